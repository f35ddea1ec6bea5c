import type { Endpoint, EndpointFact, PodFact, PodUid, ServiceFact } from '../../agent/rules/drain/facts.ts'
import { settleClaims, membersOf, planSync, type NewNode } from '../../agent/rules/members/members.ts'
import { followedService, missingFrom } from '../../agent/upkeep/sync.ts'
import { holder } from './holder.ts'
import { pod } from './pod.ts'
import { asking, serviceFact } from './service.ts'

interface Given {
  /** Annotations without their prefix, by Service, or with ports. */
  readonly services: Record<string, { ports?: ServiceFact['ports']; ask: Record<string, string> }>
  /** Endpoints of a slice: `{ web-1: { ready: false } }`; each has the address of the pod. */
  readonly slices?: readonly (Partial<Omit<EndpointFact, 'endpoints'>> & {
    readonly endpoints: Record<string, Partial<Endpoint>>
  })[]
  readonly pods?: Record<string, Partial<PodFact>>
  readonly draining?: readonly string[]
  readonly gone?: readonly string[]
  /** Nodes by upstream. */
  readonly upstreams: Record<string, readonly string[]>
}

const shown = ({ key, like }: NewNode) => (like ? `${key}=${like.weight}` : key)

/** The result of `sync` for Services and slices, as `test/cases/sync.yaml` states them. */
export function syncing(given: Given) {
  const { slices = [], draining = [], gone = [], upstreams } = given
  const pods = Object.entries(given.pods ?? {}).map(([name, differs]) => pod(name, differs))
  const services = Object.entries(given.services).map(([name, { ports, ask }]) => serviceOf(name, ask, ports))
  const { claims, problems } = settleClaims(services, () => true)
  const alive = pods.filter(({ name }) => !gone.includes(name))
  const edits = [...claims.values()].map(claim => {
    const facts = slices
      .map((slice, i) => sliceFact(slice, i, pods))
      .filter(s => s.service === claim.service.name)
    const members = membersOf(claim, facts, {
      pod: uid => alive.find(one => one.uid === uid),
      isGone: uid => gone.includes(uid.replace('uid-', '')),
      isDraining: uid => draining.includes(uid.replace('uid-', ''))
    })
    const nodes = upstreams[claim.id] ?? []
    const at = (host: string) => alive.filter(({ ips }) => ips.includes(host))
    const { add, remove } = planSync({
      members,
      holder: holder(claim.id, nodes),
      isOwn: node => facts.some(({ endpoints }) => endpoints.some(({ address }) => address === node.host)),
      isPods: node => pods.some(({ ips }) => ips.includes(node.host)),
      isGone: node => at(node.host).length === 0,
      isDraining: node => at(node.host).some(({ name }) => draining.includes(name))
    })
    return [claim.id, { add: add.map(shown), remove: [...remove] }] as const
  })
  return {
    edits: Object.fromEntries(edits),
    problems: Object.fromEntries(problems)
  }
}

const HTTP = [{ name: 'http', port: 80 }]

const serviceOf = (
  name: string,
  ask: Record<string, string>,
  ports = HTTP as ServiceFact['ports']
): ServiceFact => serviceFact(name, { ports, annotations: asking(ask) })

function sliceFact(
  { endpoints, ...differs }: NonNullable<Given['slices']>[number],
  i: number,
  pods: readonly PodFact[]
): EndpointFact {
  const family = differs.family ?? 'IPv4'
  return {
    uid: `slice-${i}`,
    namespace: 'shop',
    name: `web-${i}`,
    service: 'web',
    family,
    ports: [{ name: 'http', port: 8080 }],
    ...differs,
    endpoints: Object.entries(endpoints).map(([name, more]) => {
      const ips = pods.find(one => one.name === name)?.ips ?? []
      return {
        address: ips.find(ip => ip.includes(':') === (family === 'IPv6')) ?? '',
        podUid: `uid-${name}` as PodUid,
        ready: true,
        serving: true,
        terminating: false,
        ...more
      }
    })
  }
}

/**
 * The nodes that a holder is expected to get, if it follows the Service `web`: the pods `a` and `b`, which it lists, and others are its ready
 * endpoints. `new`: a pod that started 2 s ago. `late`: no endpoint is shown to end.
 */
export function expecting(given: {
  pods?: Readonly<Record<string, Partial<PodFact>>>
  new?: Partial<PodFact>
  services?: Readonly<Record<string, readonly string[]>>
  nodes?: readonly string[]
  late?: boolean
}) {
  const now = 1_000_000
  const drafts = { a: { ips: ['10.0.0.1'] }, b: { ips: ['10.0.0.2'] }, ...given.pods }
  const pods = Object.entries(drafts).map(([name, differs]) =>
    pod(name, { startedAt: now - 3_600_000, ...differs })
  )
  if (given.new) pods.push(pod('new', { startedAt: now - 2000, ...given.new }))
  const serving = pods.map(({ uid, ips, ready, deletionAt }) => {
    const terminating = deletionAt !== undefined && !given.late
    return { address: ips[0] ?? '', podUid: uid, ready, serving: true, terminating }
  })
  const known = {
    pods: {
      get: (uid: string) => pods.find(one => one.uid === uid),
      byIp: (ip: string) => pods.filter(({ ips }) => ips.includes(ip))
    },
    slices: {
      servicesOf: ({ name }: PodFact) =>
        (given.services?.[name] ?? ['web']).map(service => ({ namespace: 'shop', name: service })),
      serving: () => serving
    }
  } as never
  const web = holder('web', given.nodes ?? ['10.0.0.1:8080', '10.0.0.2:8080'])
  const followed = followedService(known, web)
  return typeof followed === 'string' ? followed : missingFrom(known, web, followed, { now })
}
