import { expect } from 'chai'
import { hasFixedAddress, isOfWorkload } from '../../../../agent/rules/drain/workload.ts'
import { pod } from '../../../build/pod.ts'

describe('the workload of a pod', () => {
  const owned = (owner: string | undefined, name = 'web-1', namespace = 'shop') =>
    pod(name, { owner, namespace })
  const web = owned('ReplicaSet/web-5d7f')

  it('is its controller; all ReplicaSets of a Deployment are one workload', () => {
    expect(isOfWorkload(web, owned('ReplicaSet/web-6c8a', 'web-2'))).to.equal(true)
    expect(isOfWorkload(web, owned('ReplicaSet/shop-6c8a'))).to.equal(false)
    expect(isOfWorkload(owned('StatefulSet/db-0'), owned('StatefulSet/db-1'))).to.equal(false)
  })

  it('is never in another namespace, and a pod without a controller has none', () => {
    expect(isOfWorkload(web, owned('ReplicaSet/web-5d7f', 'web-2', 'bank'))).to.equal(false)
    expect(isOfWorkload(web, owned(undefined))).to.equal(false)
    expect(isOfWorkload(owned(undefined), web)).to.equal(false)
  })

  it('is the name of a mirror pod, because its host owns all mirror pods', () => {
    expect(isOfWorkload(owned('Node/host-1', 'proxy'), owned('Node/host-1', 'proxy'))).to.equal(true)
    expect(isOfWorkload(owned('Node/host-1', 'proxy'), owned('Node/host-1', 'dns'))).to.equal(false)
    expect(isOfWorkload(owned('Node/host-1', 'proxy'), owned('Node/host-2', 'proxy'))).to.equal(false)
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
