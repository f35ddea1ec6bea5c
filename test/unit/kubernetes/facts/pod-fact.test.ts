import { expect } from 'chai'
import * as fc from 'fast-check'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { pod } from '../../../build/pod.ts'
import { podObject } from './objects.ts'
import { isOver, saysThatItEnds } from '../../../../agent/rules/drain/eligible.ts'

describe('watch: a pod becomes a fact', () => {
  it('keeps every field that a drain can depend on', () => {
    const object = podObject('web-1', {
      metadata: {
        deletionTimestamp: '2026-11-21T10:00:30Z',
        deletionGracePeriodSeconds: 30,
        annotations: { 'apisix-drain.io/skip': 'true', 'kubectl.kubernetes.io/last-applied': '{}' },
        ownerReferences: [
          { kind: 'Other', name: 'x' },
          { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d7f', controller: true }
        ],
        labels: { app: 'web', 'pod-template-hash': '5d7f' }
      },
      spec: {
        nodeName: 'host-1',
        hostNetwork: true,
        terminationGracePeriodSeconds: 60,
        containers: [
          {
            name: 'web',
            ports: [{ containerPort: 8080, hostPort: 30080 }, { containerPort: 8443 }],
            livenessProbe: { terminationGracePeriodSeconds: 90 }
          },
          {}
        ],
        initContainers: [{ name: 'proxy', ports: [{ containerPort: 15001 }, { containerPort: 8080 }] }]
      },
      status: {
        hostIP: '10.9.0.1',
        podIPs: [{ ip: '10.0.0.7' }, { ip: 'fd00::7' }],
        conditions: [{ type: 'Ready', status: 'False' }],
        containerStatuses: [
          {
            name: 'web',
            containerID: 'containerd://0123456789abcdef',
            state: { running: { startedAt: '2026-11-21T09:00:00Z' } }
          },
          { name: 'new', state: { waiting: {} } }
        ],
        initContainerStatuses: [
          {
            name: 'proxy',
            containerID: 'containerd://fedcba9876543210',
            state: { running: { startedAt: '2026-11-21T09:30:00Z' } }
          }
        ]
      }
    })
    expect(toPodFact(object)).to.deep.equal({
      uid: 'uid-web-1',
      namespace: 'shop',
      name: 'web-1',
      phase: 'Running',
      ready: false,
      ips: ['10.0.0.7', 'fd00::7'],
      hostNetwork: true,
      containerPorts: [8080, 8443, 15001],
      containers: [
        { name: 'web', ports: [8080, 8443] },
        { name: '', ports: [] },
        { name: 'proxy', ports: [15001, 8080] }
      ],
      runs: 'web=456789abcdef proxy=ba9876543210',
      hostPorts: [30080],
      hostIp: '10.9.0.1',
      deletionAt: Date.parse('2026-11-21T10:00:30Z'),
      deletionGraceMs: 30_000,
      graceMs: 60_000,
      longestGraceMs: 90_000,
      startedAt: Date.parse('2026-11-21T09:30:00Z'),
      owner: 'ReplicaSet/web-5d7f',
      workload: 'ReplicaSet.apps/web-<pod-template-hash>',
      host: 'host-1',
      hook: undefined,
      annotations: { 'apisix-drain.io/skip': 'true' },
      labelKey: 'app=web'
    })
  })

  const controlled = (apiVersion: unknown, kind: string, name: string, labels: object = {}) =>
    toPodFact({
      metadata: {
        uid: 'u',
        name: 'n',
        namespace: 'ns',
        labels,
        ownerReferences: [
          {
            apiVersion,
            kind,
            name,
            controller: true
          }
        ]
      }
    })

  it('keeps its controller with the API group, one for all generations that its labels confirm', () => {
    const workloadOf = (...given: Parameters<typeof controlled>) => controlled(...given)?.workload
    const replicaSet = (name: string, labels: object) => workloadOf('apps/v1', 'ReplicaSet', name, labels)
    const hash = { 'pod-template-hash': '1a' }
    expect(replicaSet('web-1a', hash)).to.equal(replicaSet('web-2b', { 'pod-template-hash': '2b' }))
    expect(replicaSet('web-1a', hash)).not.to.equal(replicaSet('web-canary-1a', hash))
    expect(replicaSet('web-1a', { 'rollouts-pod-template-hash': '1a' })).to.equal(
      'ReplicaSet.apps/web-<rollouts-pod-template-hash>'
    )
    for (const labels of [
      {},
      { 'pod-template-hash': 'a' },
      { 'pod-template-hash': '' },
      { 'pod-template-hash': 7 }
    ])
      expect(replicaSet('web-1a', labels)).to.equal('ReplicaSet.apps/web-1a')
    expect(workloadOf('apps.kruise.io/v1alpha1', 'CloneSet', 'web-1a', hash)).to.equal(
      'CloneSet.apps.kruise.io/web-1a'
    )
    expect(workloadOf(undefined, 'ReplicaSet', 'web')).to.equal('ReplicaSet/web')
  })

  it('keeps the DeploymentConfig of a ReplicationController', () => {
    const pods = ['web-1', 'web-2'].map(name =>
      controlled('v1', 'ReplicationController', name, {
        app: 'web',
        deployment: name,
        deploymentconfig: 'web'
      })
    )
    for (const found of pods)
      expect(found).to.include({
        workload: 'ReplicationController/<deploymentconfig web>',
        labelKey: 'app=web,deploymentconfig=web'
      })
    const other = controlled('v1', 'ReplicationController', 'web-1', {
      deployment: 'web',
      deploymentconfig: 'web'
    })
    expect(other).to.include({
      workload: 'ReplicationController/web-1',
      labelKey: 'deployment=web,deploymentconfig=web'
    })
    expect(controlled('v1', 'ReplicationController', 'web', { deployment: 'web' })?.workload).to.equal(
      'ReplicationController/web'
    )
  })

  it('keeps the labels that a selector can use, without generated ones', () => {
    const keyOf = (labels: object) =>
      toPodFact({ metadata: { uid: 'u', name: 'n', namespace: 'ns', labels } })?.labelKey
    const generated = {
      'pod-template-hash': '1a2b',
      'apps.kubernetes.io/pod-index': '0',
      'apps.kruise.io/cloneset-instance-id': 'j5ht6',
      'lifecycle.apps.kruise.io/state': 'PreparingDelete'
    }
    expect(keyOf({ version: 'v1', app: 'web', ...generated })).to.equal('app=web,version=v1')
    expect(keyOf({ app: 'web', version: 'v1' })).to.equal('app=web,version=v1')
    expect(keyOf(generated)).to.equal('')
  })

  it('keeps whether its hooks ask the agent, and whether each of them has a fallback', () => {
    const hookOf = (...hooks: (object | undefined)[]) => {
      const containers = hooks.map((preStop, i) => ({
        name: `c${i}`,
        ...(preStop && { lifecycle: { preStop } })
      }))
      return toPodFact({ metadata: { uid: 'u', name: 'n', namespace: 'ns' }, spec: { containers } })?.hook
    }
    const curl = (rest: string) => ({
      exec: { command: ['sh', '-c', `curl -fsS http://a/v1/prestop${rest}`] }
    })
    const helper = { exec: { command: ['/hook/apisix-drain-hook'] } }
    const bare = { httpGet: { path: '/v1/prestop', port: 8080 } }
    expect(hookOf(undefined, { sleep: { seconds: 5 } })).to.equal(undefined)
    expect(hookOf({ exec: { command: ['/drain.sh'] } }), 'it does not show that it asks').to.equal(undefined)
    expect(hookOf({ exec: { command: ['/drain.sh'] } }, helper)).to.equal('safe')
    expect(hookOf(curl(' || sleep 5'))).to.equal('safe')
    expect(hookOf(undefined, helper), 'one container ends at once').to.equal('part')
    expect(hookOf(curl(''))).to.equal('bare')
    expect(hookOf(bare, helper)).to.equal('bare')
    expect(hookOf(helper, bare)).to.equal('bare')
    expect(hookOf(helper, curl(' || sleep 5'))).to.equal('safe')
  })

  it('gives missing fields a value', () => {
    const fact = toPodFact({ metadata: { uid: 'u', name: 'n', namespace: 'ns' } })
    expect(fact).to.deep.equal({
      uid: 'u',
      namespace: 'ns',
      name: 'n',
      phase: 'Unknown',
      ready: false,
      ips: [],
      hostNetwork: false,
      containerPorts: [],
      containers: [],
      runs: '',
      hostPorts: [],
      hostIp: undefined,
      deletionAt: undefined,
      deletionGraceMs: undefined,
      graceMs: 30_000,
      longestGraceMs: 30_000,
      startedAt: undefined,
      owner: undefined,
      workload: undefined,
      host: undefined,
      hook: undefined,
      annotations: {},
      labelKey: ''
    })
  })

  it('falls back to podIP if podIPs is missing', () => {
    expect(toPodFact(podObject('a', { status: { podIPs: undefined } }))?.ips).to.deep.equal(['10.0.0.1'])
  })

  it('refuses a pod without an identity, and an unreadable deletion', () => {
    for (const metadata of [
      { uid: undefined },
      { name: 7 },
      { namespace: '' },
      { deletionTimestamp: 'soon' }
    ]) {
      expect(toPodFact(podObject('a', { metadata })), JSON.stringify(metadata)).to.equal(undefined)
    }
  })

  it('never throws, is idempotent and does not change the object, for any input', () => {
    const anything = fc.anything({ maxDepth: 3 })
    const pods = fc
      .record({ deletionTimestamp: anything, annotations: anything, ownerReferences: anything })
      .chain(metadata =>
        fc
          .record({ spec: fc.record({ containers: anything, hostNetwork: anything }), status: anything })
          .map(({ spec, status }) => ({
            metadata: { uid: 'u', name: 'n', namespace: 'ns', ...metadata },
            spec,
            status
          }))
      )
    fc.assert(
      fc.property(fc.oneof(anything, pods), object => {
        const before = structuredClone(object)
        const once = toPodFact(object)
        expect(toPodFact(object)).to.deep.equal(once)
        expect(object).to.deep.equal(before)
      }),
      { numRuns: 300 }
    )
  })

  it('distinguishes pods that are ending from pods that have ended', () => {
    expect(saysThatItEnds(pod('a'))).to.equal(false)
    expect(saysThatItEnds(pod('a', { deletionAt: 1 }))).to.equal(true)
    expect(saysThatItEnds(pod('a', { phase: 'Failed' }))).to.equal(true)
    expect(isOver(pod('a', { deletionAt: 1 }))).to.equal(false)
    expect(isOver(pod('a', { phase: 'Succeeded' }))).to.equal(true)
  })
})
