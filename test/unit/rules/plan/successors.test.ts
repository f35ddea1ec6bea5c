import { expect } from 'chai'
import * as fc from 'fast-check'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import type { EndpointFact, PodFact } from '../../../../agent/rules/drain/facts.ts'
import { withLabels } from '../../../../agent/rules/drain/eligible.ts'
import {
  areWhole,
  candidatesOf,
  chosenOf,
  groupOf,
  mayTakeOver,
  MOST_SUCCESSORS,
  servicePortsOf,
  nodesOfAll
} from '../../../../agent/rules/plan/successors.ts'
import { drainOf, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod } from '../../../build/pod.ts'
import { endpoint, slice } from '../../../build/service.ts'
import { worldOf } from '../../../build/world.ts'

/**
 * Controllers of random pods, as Kubernetes shows them: a Deployment and a Rollout by a ReplicaSet and its hash. `deed` says, in a user's
 * words, what a pod does that another one cannot.
 */
interface Controller {
  readonly kind: string
  readonly apiVersion: string
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
  /** The workload as a user sees it. */
  readonly of: string
  readonly deed: (pod: { readonly name: string; readonly host: string | undefined }) => string | undefined
}
const same = () => 'the same as all'
const made = (kind: string, name: string, label: string, hash: string): Controller => ({
  kind: 'ReplicaSet',
  apiVersion: 'apps/v1',
  name: `${name}-${hash}`,
  of: `${kind} ${name}`,
  deed: same,
  labels: { [label]: hash }
})
const itself = (kind: string, apiVersion: string, name: string, deed: Controller['deed']): Controller => ({
  kind,
  apiVersion,
  name,
  deed,
  of: `${apiVersion} ${kind} ${name}`
})
const deployment = (name: string, hash: string) => made('Deployment', name, 'pod-template-hash', hash)
const CONTROLLERS: readonly (Controller | undefined)[] = [
  deployment('web', '1a'),
  deployment('web', '2b'),
  deployment('web', '1a'),
  deployment('web', '2b'),
  deployment('web-canary', '1a'),
  made('Rollout', 'web', 'rollouts-pod-template-hash', '1a'),
  made('Rollout', 'web', 'rollouts-pod-template-hash', '2b'),
  itself('ReplicaSet', 'apps/v1', 'web-1a', same),
  itself('ReplicationController', 'v1', 'web', same),
  itself('CloneSet', 'apps.kruise.io/v1alpha1', 'web', same),
  itself('StatefulSet', 'apps/v1', 'web', ({ name }) => `shard ${name}`),
  itself('StatefulSet', 'apps.kruise.io/v1beta1', 'web', ({ name }) => `shard ${name}`),
  itself('DaemonSet', 'apps/v1', 'web', ({ host }) => host && `what runs on ${host}`),
  itself('Job', 'batch/v1', 'web', () => undefined),
  undefined
]

/** Random pods with few different values, so that roles, Services, versions, ports and addresses often match. */
const podArb = fc.record({
  namespace: fc.constantFrom('shop', 'shop', 'shop', 'test'),
  name: fc.constantFrom('web-0', 'web-1'),
  host: fc.constantFrom('host-1', 'host-1', 'host-2', undefined),
  /** The controller of most pods of a scene is the same. */
  isStrange: fc.constantFrom(false, false, true),
  stranger: fc.constantFrom(...CONTROLLERS),
  version: fc.constantFrom('v1', 'v1', 'v2'),
  services: fc.subarray(['web', 'web-stable', 'web-canary']),
  /** What the ending pod was before an operator gave its role to another pod, or what it becomes while it ends. */
  other: fc.record({
    version: fc.constantFrom('v1', 'v2'),
    services: fc.subarray(['web', 'web-stable', 'web-canary'])
  }),
  switches: fc.constantFrom('never', 'before', 'after'),
  /** The number of each named port; `undefined`: the pod has no port of that name. */
  ports: fc.record({
    http: fc.constantFrom(8080, 8080, 9090, undefined),
    admin: fc.constantFrom(8080, 9000, undefined)
  }),
  ip: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6'),
  ready: fc.boolean(),
  readyInSlice: fc.constantFrom(true, true, false),
  ends: fc.constantFrom(false, false, true),
  refuses: fc.constantFrom(false, false, false, true)
})
type Draft = (typeof podArb extends fc.Arbitrary<infer T> ? T : never) & {
  readonly controller: Controller | undefined
}

const sceneArb = fc
  .record({
    usual: fc.constantFrom(...CONTROLLERS),
    drafts: fc.array(podArb, { minLength: 2, maxLength: 7 }),
    whole: fc.boolean()
  })
  .map(({ usual, drafts, whole }) => ({
    pods: drafts.map((draft): Draft => ({ ...draft, controller: draft.isStrange ? draft.stranger : usual })),
    whole
  }))

/** The pod as the API server sends it. */
function factOf(
  { namespace, name, host, controller, version, ip, ready, ends, refuses }: Draft,
  i: number,
  isEnding = ends || i === 0
): PodFact {
  const generated: Record<string, string> = { 'apps.kruise.io/cloneset-instance-id': `${i}` }
  const fact = toPodFact({
    metadata: {
      uid: `p${i}`,
      namespace,
      name,
      labels: {
        app: 'web',
        version,
        ...(controller?.kind === 'CloneSet' && generated),
        ...controller?.labels
      },
      ...(controller && { ownerReferences: [{ ...controller, controller: true }] }),
      ...(refuses && { annotations: { 'apisix-drain.io/successors': 'false' } }),
      ...(isEnding && { deletionTimestamp: '2026-11-21T10:00:30Z' })
    },
    spec: { nodeName: host },
    status: {
      phase: 'Running',
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }]
    }
  })
  if (!fact) throw new Error('no fact')
  return fact
}

function sceneOf({ pods, whole }: typeof sceneArb extends fc.Arbitrary<infer T> ? T : never) {
  const [first] = pods as [Draft]
  const then = { ...first, ...first.other }
  const facts = pods.map((draft, i) => factOf(draft, i))
  if (first.switches === 'before') facts[0] = withLabels(facts[0]!, factOf(then, 0, false), 0)
  if (first.switches === 'after') facts[0] = withLabels(factOf(then, 0), facts[0], 0)
  const slicesOf = ({ namespace, services, ports, ip, readyInSlice, ends }: Draft, i: number) =>
    services.map((service): EndpointFact => {
      const terminates = ends || i === 0
      const fact = facts[i] as PodFact
      const one = endpoint(fact.uid, {
        address: ip,
        ready: readyInSlice && !terminates,
        serving: readyInSlice,
        terminating: terminates
      })
      return slice(`${service}-${i}`, [one], {
        namespace,
        service,
        ports: Object.entries(ports).flatMap(([name, port]) => (port === undefined ? [] : [{ name, port }]))
      })
    })
  const slices = pods.flatMap(slicesOf)
  const [old] = facts as [PodFact]
  const drains = drainsOf(
    facts.filter(fact => fact.deletionAt !== undefined).map(fact => drainOf(seen(fact)))
  )
  const byUid = new Map(facts.map(fact => [fact.uid, fact]))
  const places = whole ? [holder('web', [], { owner: 'ingress-controller-2' })] : [holder('web', [])]
  const isWhole = areWhole(places)
  const past = first.switches === 'before' ? slicesOf(then, 0) : []
  const standing = servicePortsOf(old, slices, servicePortsOf(old, past))
  const found =
    groupOf(old, standing, isWhole) === ''
      ? {}
      : nodesOfAll(
          chosenOf(
            old,
            candidatesOf(
              old,
              standing,
              isWhole,
              service =>
                slices.filter(slice => slice.service === service && slice.namespace === old.namespace),
              uid => byUid.get(uid)
            ),
            ({ uid }) => mayTakeOver(worldOf([], facts), drains, byUid.get(uid))
          )
        )
  return Object.entries(found).flatMap(([port, nodes]) => nodes.map(node => ({ port: Number(port), node })))
}

/** Returns, in a user's words, why the pod may not take over; empty if it may. */
function objection(pods: readonly Draft[], i: number, from: number, to: number, whole: boolean): string {
  const [old] = pods
  const next = pods[i]
  if (!old || !next) return 'no such pod'
  const deed = old.controller?.deed(old)
  const was = old.switches === 'before' ? old.other : old
  const names = (['http', 'admin'] as const).filter(name => old.ports[name] === from)
  if (old.refuses || next.refuses) return 'refused'
  if (i === 0) return 'itself'
  if (old.namespace !== next.namespace) return 'another namespace'
  if (old.controller?.of !== next.controller?.of) return 'another workload'
  if (deed === undefined || next.controller?.deed(next) !== deed) return 'another role'
  if (!whole && was.version !== next.version) return 'another version, which a subset may tell apart'
  if (!next.ready || !next.readyInSlice || next.ends) return 'it does not serve'
  if (![...old.services, ...was.services].every(service => next.services.includes(service)))
    return 'not in all Services'
  if (names.length === 0 || !names.every(name => next.ports[name] === to)) return 'another port'
  if (pods.some((other, n) => n !== i && n !== 0 && other.ip === next.ip && !other.ends)) return 'its address'
  return ''
}

const isInService = ({ services, switches, other }: Draft): boolean =>
  services.length > 0 || (switches === 'before' && other.services.length > 0)

describe('successors', () => {
  it('are never the wrong pods, and none that may take over is missing', () =>
    fc.assert(
      fc.property(sceneArb, scene => {
        const { pods, whole } = scene
        const found = sceneOf(scene)
        for (const { port, node } of found) {
          const [ip, to] = node.split(':')
          const reasons = pods.flatMap((one, i) =>
            one.ip === ip ? [objection(pods, i, port, Number(to), whole)] : []
          )
          expect(reasons, `${port} -> ${node}`).to.include('')
        }
        for (const [i, { ip, ports }] of pods.entries())
          for (const port of new Set(Object.values(pods[0]!.ports)))
            for (const to of new Set(Object.values(ports)))
              if (isInService(pods[0]!) && port && to && objection(pods, i, port, to, whole) === '')
                expect(found, `${port} -> ${ip}:${to}`).to.deep.include({ port, node: `${ip}:${to}` })
      }),
      { numRuns: 3000 }
    ))

  it('differ between pods, agree between agents, and change little when a pod is added', () => {
    const candidates = (n: number) => {
      const all = Array.from({ length: n }, (_, i) =>
        pod(`next-${i}`, { owner: 'ReplicaSet/web-1a', ips: [`10.1.${i >> 8}.${i & 255}`] })
      )
      const ready = all.flatMap(({ uid, ips: [address = ''] }) => {
        const one = endpoint(uid, { address })
        // Whoever writes a slice may name a pod twice.
        return [one, one]
      })
      const old = pod('old', { owner: 'ReplicaSet/web-1a' })
      const standing = [{ service: 'web', portName: 'http', port: 80 }]
      return candidatesOf(
        old,
        standing,
        false,
        () => [slice('s', ready, { ports: [{ name: 'http', port: 80 }] })],
        uid => all.find(one => one.uid === uid)
      )
    }
    const of = (name: string, n: number) =>
      nodesOfAll(chosenOf(pod(name), candidates(n), () => true))['80'] ?? []
    expect(of('a', 200)).to.have.length(MOST_SUCCESSORS)
    expect(of('a', 200)).to.deep.equal(of('a', 200))
    const used = new Set(Array.from({ length: 40 }, (_, i) => of(`old-${i}`, 200)).flat())
    expect(used.size).to.be.above(100)
    expect(of('a', 201).filter(node => !of('a', 200).includes(node)).length).to.be.at.most(1)
    expect(of('a', 3)).to.have.length(3)
  })
})

describe('the Services and labels by which a pod gets successors', () => {
  const of = (service: string) =>
    slice(service, [endpoint(pod('a').uid)], { service, ports: [{ name: 'http', port: 80 }] })

  it('keeps the Services that have dropped it', () => {
    const before = servicePortsOf(pod('a'), [of('web'), of('web-stable')])
    expect(before.map(({ service }) => service)).to.deep.equal(['web', 'web-stable'])
    expect(servicePortsOf(pod('a'), [of('web')], before)).to.equal(before)
    expect(servicePortsOf(pod('a'), [], before)).to.equal(before)
  })

  it('are 64 ports at most: a pod with more has no successors', () => {
    const ports = Array.from({ length: 65 }, (_, i) => ({ name: 'http', port: i + 1 }))
    const standing = servicePortsOf(pod('a'), [{ ...of('web'), ports }])
    const web = pod('a', { owner: 'ReplicaSet/web-1a' })
    expect([standing.length, groupOf(web, standing, true)]).to.deep.equal([65, ''])
    expect(groupOf(web, standing.slice(1), true)).to.not.equal('')
  })
})
