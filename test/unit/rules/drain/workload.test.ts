import { expect } from 'chai'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import { hasFixedAddress, isOfRole } from '../../../../agent/rules/drain/workload.ts'
import { pod } from '../../../build/pod.ts'

describe('the role of a pod', () => {
  const of = (workload: string | undefined, differs: Partial<PodFact> = {}) =>
    pod('web-1', { workload, ...differs })
  const isShared = (workload: string, differs: Partial<PodFact>) =>
    isOfRole(of(workload), of(workload, differs))

  it('is its workload, if all pods of such a controller do the same work', () => {
    for (const workload of [
      'ReplicaSet.apps/web',
      'ReplicationController/web',
      'CloneSet.apps.kruise.io/web'
    ]) {
      expect(isShared(workload, { name: 'web-2', host: 'host-2' }), workload).to.equal(true)
      expect(isShared(workload, { namespace: 'bank' }), workload).to.equal(false)
      expect(isOfRole(of(workload), of(`${workload}-2`)), workload).to.equal(false)
    }
    expect(isOfRole(of('ReplicaSet.apps/web'), of('CloneSet.apps.kruise.io/web'))).to.equal(false)
  })

  it('is its name in a StatefulSet of any API group', () => {
    for (const workload of ['StatefulSet.apps/db', 'StatefulSet.apps.pingcap.com/db', 'StatefulSet/db']) {
      expect(isShared(workload, { host: 'host-2' }), workload).to.equal(true)
      expect(isShared(workload, { name: 'web-2' }), workload).to.equal(false)
    }
    expect(isOfRole(of('StatefulSet.apps/db'), of('StatefulSet.apps.pingcap.com/db'))).to.equal(false)
  })

  it('is its host in a DaemonSet, and a pod without a host has none', () => {
    expect(isShared('DaemonSet.apps/proxy', { name: 'web-2' })).to.equal(true)
    expect(isShared('DaemonSet.apps/proxy', { host: 'host-2' })).to.equal(false)
    const waiting = of('DaemonSet.apps/proxy', { host: undefined })
    expect(isOfRole(waiting, waiting)).to.equal(false)
  })

  it('is the name of a mirror pod, because its host owns all mirror pods', () => {
    expect(isShared('Node/host-1', {})).to.equal(true)
    expect(isShared('Node/host-1', { name: 'dns' })).to.equal(false)
    expect(isOfRole(of('Node/host-1'), of('Node/host-2'))).to.equal(false)
  })

  it('is none for any other controller, and without one', () => {
    for (const workload of [
      'Job.batch/web',
      'ReplicaSet.acme.example/web',
      'StatefulSetter.acme.example/web',
      undefined
    ])
      expect(isOfRole(of(workload), of(workload)), workload).to.equal(false)
  })

  it('has one address per host if it is a DaemonSet or a mirror pod with hostNetwork', () => {
    const fixed = (owner: string | undefined, hostNetwork: boolean) =>
      hasFixedAddress(pod('web-1', { owner, hostNetwork }))
    expect(fixed('DaemonSet/web', true)).to.equal(true)
    expect(fixed('Node/host-1', true)).to.equal(true)
    expect(fixed('DaemonSet/web', false)).to.equal(false)
    expect(fixed('ReplicaSet/web-5d7f', true)).to.equal(false)
    expect(fixed(undefined, true)).to.equal(false)
  })
})
