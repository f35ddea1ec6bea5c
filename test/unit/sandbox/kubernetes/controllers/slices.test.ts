import { expect } from 'chai'
import * as fc from 'fast-check'
import { KCM_RATE, take, type Bucket } from '../../../../../sandbox/kubernetes/controllers/bucket.ts'
import { planReplicas } from '../../../../../sandbox/kubernetes/controllers/replicaset.ts'
import { endpointOf, planSlices, portsOf } from '../../../../../sandbox/kubernetes/controllers/slices.ts'
import type {
  EndpointSlice,
  Meta,
  Pod,
  PodSpec,
  PodStatus,
  ReplicaSet,
  Service
} from '../../../../../sandbox/kubernetes/objects.ts'

const meta = (name: string, differs: Partial<Meta> = {}): Meta => ({
  name,
  namespace: 'default',
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
  ...differs
})
const pod = (
  name: string,
  status: PodStatus = {},
  metadata: Partial<Meta> = {},
  spec: Partial<PodSpec> = {}
): Pod => ({
  metadata: meta(name, metadata),
  spec: {
    nodeName: 'host-1',
    containers: [{ name: 'app', ports: [{ name: 'http', containerPort: 8080 }] }],
    ...spec
  },
  status: {
    phase: 'Running',
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
    conditions: [{ type: 'Ready', status: 'True' }],
    ...status
  }
})
const service = (spec: Partial<Service['spec']> = {}): Service => ({
  metadata: meta('web'),
  spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }], ...spec }
})
const ending = { deletionTimestamp: '2026-01-01T00:00:30Z' }
const unready: PodStatus = { conditions: [{ type: 'Ready', status: 'False' }] }

describe('sandbox/kubernetes endpoint conditions', () => {
  const conditions = [
    ['ready', pod('a'), false, { ready: true, serving: true, terminating: false }],
    ['not ready', pod('a', unready), false, { ready: false, serving: false, terminating: false }],
    [
      'ending, still serving',
      pod('a', {}, ending),
      false,
      { ready: false, serving: true, terminating: true }
    ],
    [
      'ending, not serving',
      pod('a', unready, ending),
      false,
      { ready: false, serving: false, terminating: true }
    ],
    [
      'not ready, published all the same',
      pod('a', unready),
      true,
      { ready: true, serving: false, terminating: false }
    ],
    [
      'ending, published all the same',
      pod('a', {}, ending),
      true,
      { ready: true, serving: true, terminating: true }
    ]
  ] as const
  for (const [what, one, publish, expected] of conditions)
    it(what, () => expect(endpointOf(one, 'IPv4', publish)?.conditions).to.deep.equal(expected))

  it('has the address of its family, its pod and its host', () => {
    expect(endpointOf(pod('a'), 'IPv6', false)).to.deep.include({
      addresses: ['fd00::1'],
      nodeName: 'host-1',
      targetRef: { kind: 'Pod', namespace: 'default', name: 'a', uid: 'uid-a' }
    })
  })
  it('does not exist without an address, nor once the pod has ended', () => {
    expect(endpointOf(pod('a', { podIP: '', podIPs: [] }), 'IPv4', true)).to.equal(undefined)
    for (const phase of ['Succeeded', 'Failed'] as const)
      expect(endpointOf(pod('a', { phase }), 'IPv4', true)).to.equal(undefined)
  })
  it('resolves a named port in each pod, and leaves out a missing one', () => {
    const two = service({
      ports: [
        { name: 'x', port: 80, targetPort: 'http' },
        { name: 'y', port: 81, targetPort: 'none' },
        { name: 'z', port: 82 }
      ]
    })
    expect(portsOf(two, pod('a')).map(({ name, port }) => `${name} ${port}`)).to.deep.equal([
      'x 8080',
      'z 82'
    ])
  })
})

describe('sandbox/kubernetes slices', () => {
  const apply = (
    existing: readonly EndpointSlice[],
    one: Service,
    pods: readonly Pod[],
    most: number
  ): EndpointSlice[] => {
    const { create, update, remove } = planSlices(one, pods, existing, most)
    const changed = new Map(update.map(slice => [slice.metadata.name, slice]))
    return [
      ...existing
        .filter(slice => !remove.includes(slice))
        .map(slice => changed.get(slice.metadata.name) ?? slice),
      ...create.map((slice, i) => ({ ...slice, metadata: meta(`s${existing.length + i}-${Math.random()}`) }))
    ]
  }
  const many = (ids: readonly number[]) =>
    ids.map(id =>
      pod(
        `p${id}`,
        { podIPs: [{ ip: `10.0.0.${id}` }] },
        {},
        id % 3 === 0 ? { containers: [{ name: 'app', ports: [{ name: 'http', containerPort: 9090 }] }] } : {}
      )
    )

  it('lists every pod once, within the limit, split by port map; and plans nothing if nothing has changed (law)', () => {
    const sets = fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 25 }), {
      minLength: 1,
      maxLength: 6
    })
    fc.assert(
      fc.property(sets, fc.integer({ min: 1, max: 5 }), (rounds, most) => {
        let slices: EndpointSlice[] = []
        for (const ids of rounds) {
          const pods = many(ids)
          slices = apply(slices, service(), pods, most)
          const said = slices.flatMap(slice =>
            slice.endpoints.map(({ targetRef }) => `${targetRef?.name} ${slice.ports[0]?.port}`)
          )
          expect(said.toSorted()).to.deep.equal(
            ids.map(id => `p${id} ${id % 3 === 0 ? 9090 : 8080}`).toSorted()
          )
          for (const slice of slices) expect(slice.endpoints.length).to.be.at.most(most)
          expect(planSlices(service(), pods, slices, most)).to.deep.equal({
            create: [],
            update: [],
            remove: []
          })
        }
      })
    )
  })
  it('changes only the slice that the pod is in', () => {
    const before = apply([], service(), many([1, 2, 4, 5]), 2)
    const pods = many([1, 2, 4, 5]).map(one =>
      one.metadata.name === 'p5' ? { ...one, metadata: { ...one.metadata, ...ending } } : one
    )
    const plan = planSlices(service(), pods, before, 2)
    expect([plan.create.length, plan.update.length, plan.remove.length]).to.deep.equal([0, 1, 0])
  })
})

describe('sandbox/kubernetes token bucket', () => {
  it('lets the burst through and then the rate', () => {
    let bucket: Bucket = { tokens: KCM_RATE.burst, at: 0 }
    const waits = Array.from({ length: 40 }, () => {
      const taken = take(bucket, KCM_RATE, 0)
      bucket = taken.bucket
      return taken.waitMs
    })
    expect(waits.slice(0, 30).every(ms => ms === 0)).to.equal(true)
    expect(waits.slice(30)).to.deep.equal([50, 100, 150, 200, 250, 300, 350, 400, 450, 500])
    expect(take(bucket, KCM_RATE, 60_000).bucket.tokens).to.equal(29)
  })
})

describe('sandbox/kubernetes replica set', () => {
  const set = (replicas: number): ReplicaSet => ({
    metadata: meta('web'),
    spec: { replicas, selector: {}, template: { spec: { containers: [] } } },
    status: {}
  })
  it('counts neither ending nor ended pods', () => {
    expect(
      planReplicas(set(2), [pod('a'), pod('b', {}, ending), pod('c', { phase: 'Failed' })])
    ).to.deep.equal({ create: 1, remove: [] })
  })
  it('removes first the pods that serve least, then by cost, then the youngest', () => {
    const pods = [
      pod('old'),
      pod('young', {}, { creationTimestamp: '2026-01-02T00:00:00Z' }),
      pod('cheap', {}, { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-5' } }),
      pod('unready', unready),
      pod('pending', { ...unready, phase: 'Pending' })
    ]
    const order = [4, 3, 2, 1, 0].map(left => planReplicas(set(left), pods).remove.at(-1)?.metadata.name)
    expect(order).to.deep.equal(['pending', 'unready', 'cheap', 'young', 'old'])
  })
  it('creates nothing while it is being deleted itself', () => {
    const going = { ...set(3), metadata: { ...meta('web'), ...ending } }
    expect(planReplicas(going, [])).to.deep.equal({ create: 0, remove: [] })
  })
})
