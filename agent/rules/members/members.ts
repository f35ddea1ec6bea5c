import { annotationReader, quoted, UPSTREAM } from '../drain/annotations.ts'
import { isOver } from '../drain/eligible.ts'
import {
  nodeKey,
  type Endpoint,
  type EndpointFact,
  type NodeKey,
  type PodFact,
  type ServiceFact
} from '../drain/facts.ts'
import type { HolderKey, Holder, HolderNode } from '../plan/holder.ts'

/** The facts about the pods behind endpoints. */
interface PodsKnown {
  /** `undefined`: no pod of this uid is known (not yet, or not any more; see `isGone`). */
  pod(uid: NonNullable<Endpoint['podUid']>): PodFact | undefined
  /** Whether the pod's object was seen to be deleted. A slice that still lists it is late. */
  isGone(uid: NonNullable<Endpoint['podUid']>): boolean
  /** Whether a drain removes this pod. Until the drain is over, the pod is no member, whatever a slice shows. */
  isDraining(uid: NonNullable<Endpoint['podUid']>): boolean
}

/**
 * The nodes that a claimed holder should list: every endpoint that is ready on the claimed port, each once. It reads all slices of the
 * Service, of both families. `ready` already includes publishNotReadyAddresses. A `terminating` endpoint is never a member. Endpoints
 * with a host name (FQDN) are no pods and are left out.
 */
export function membersOf(
  claim: Claim,
  slices: readonly EndpointFact[],
  pods: PodsKnown
): ReadonlySet<NodeKey> {
  const members = new Set<NodeKey>()
  for (const slice of slices) {
    if (slice.family === 'FQDN') continue
    const port = slice.ports.find(({ name }) => name === claim.port)?.port
    if (port === undefined) continue
    for (const endpoint of slice.endpoints) {
      if (isMember(endpoint, pods)) members.add(nodeKey(endpoint.address, port))
    }
  }
  return members
}

function isMember(endpoint: Endpoint, pods: PodsKnown): boolean {
  const { podUid: uid } = endpoint
  if (endpoint.terminating || !endpoint.ready) return false
  // A user wrote an endpoint without a pod by hand.
  if (uid === undefined) return true
  if (pods.isGone(uid) || pods.isDraining(uid)) return false
  const pod = pods.pod(uid)
  // The watch of slices can be ahead of the watch of pods, so the pod's own event follows.
  return pod === undefined || (pod.deletionAt === undefined && !isOver(pod))
}

/** One Service's claim on the nodes of one upstream. */
export interface Claim {
  readonly service: ServiceFact
  /** Always `upstreams/<id>`. */
  readonly holder: HolderKey
  readonly id: string
  /** The name of the Service's port, which EndpointSlices use too. */
  readonly port: string
}

/** The claims of a Service. If any part is unreadable, nothing is done for the Service. */
interface Claims {
  readonly claims: readonly Claim[]
  readonly problems: readonly string[]
}

const NONE: Claims = { claims: [], problems: [] }
/** apisix/schema_def.lua: `id_schema`. */
const ID = /^[a-zA-Z0-9-_.]{1,64}$/

/** Reads the annotations of a Service. Never throws. */
export function claimsOf(service: ServiceFact): Claims {
  const { annotations } = service
  if (annotations[UPSTREAM] === undefined) return NONE
  const { read, problems: unreadable } = annotationReader(annotations)
  if (service.externalName !== undefined)
    return { claims: [], problems: [`${UPSTREAM}: a Service of type ExternalName has no endpoints to list`] }
  const problems: string[] = []
  const wanted = read(UPSTREAM, text => text.split(','), 'a list of upstreams') ?? []
  const claims = wanted.flatMap(entry => {
    const at = entry.lastIndexOf('=')
    const id = entry.slice(at + 1).trim()
    const found = portNamed(service, at < 0 ? undefined : entry.slice(0, at).trim())
    if (!ID.test(id)) problems.push(`${UPSTREAM}: ${quoted(entry.trim())} names no upstream`)
    if (typeof found !== 'string') {
      problems.push(`${UPSTREAM}: ${found.problem}`)
      return []
    }
    return [{ service, holder: `upstreams/${id}`, id, port: found }]
  })
  for (const id of twice(claims.map(claim => claim.id))) {
    problems.push(`${UPSTREAM}: ${id} is named for two ports: nodes of one upstream serve the same`)
  }
  const all = [...unreadable, ...problems]
  return all.length > 0 ? { claims: [], problems: all } : { claims, problems: all }
}

function portNamed({ ports }: ServiceFact, wanted: string | undefined): string | { problem: string } {
  if (wanted === undefined && ports.length !== 1)
    return { problem: `the Service has ${ports.length} ports: write <port>=<upstream>` }
  const named = ports.filter(
    ({ name, port }) => wanted === undefined || name === wanted || String(port) === wanted
  )
  // TCP and UDP may share a number.
  const found = named.find(({ protocol }) => protocol === undefined) ?? named[0]
  if (!found) return { problem: `the Service has no port ${quoted(String(wanted))}` }
  if (found.protocol === undefined) return found.name
  return { problem: `port ${found.port} is ${found.protocol}: only a port of TCP fills an upstream` }
}

function twice(ids: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(ids.filter(id => seen.has(id) || !seen.add(id)))
}

/** `namespace/name` of a Service. */
export const serviceName = ({ namespace, name }: Pick<ServiceFact, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`

/** An entry of `sync.allow`: a namespace, a slash, and the id of an upstream. `*` stands for any characters. */
export const ALLOW_FORM = /^[a-z0-9*-]{1,63}\/[a-zA-Z0-9*_.-]{1,64}$/

/**
 * Reads `sync.allow`.
 *
 * @param patterns each of `ALLOW_FORM`
 * @returns whether a claim's namespace may fill the claimed upstream
 */
export function allowedBy(patterns: readonly string[]): (claim: Claim) => boolean {
  const expressions = patterns.map(pattern => new RegExp(`^${expressionOf(pattern)}$`))
  return ({ service, id }) => expressions.some(one => one.test(`${service.namespace}/${id}`))
}

/**
 * `*` matches any characters except the slash between namespace and id. Besides `*`, only the dot needs an escape: `ALLOW_FORM` allows no
 * other special character.
 */
const expressionOf = (pattern: string): string => pattern.replaceAll('.', '\\.').replaceAll(/\*+/g, '[^/]*')

/** Every claim that counts, by holder, and the problems of the other claims, by Service (`namespace/name`). */
export interface Settled {
  readonly claims: ReadonlyMap<HolderKey, Claim>
  readonly problems: ReadonlyMap<string, string>
}

/** How many problems of one Service a message names. */
const MOST_NAMED = 8

/**
 * One claim for each holder. A claim that `sync.allow` does not list never counts. Of the other claims the oldest Service's counts, so
 * every agent settles them in the same way at any time, and a later Service changes nothing.
 *
 * @param allows whether the configuration lets this claim's namespace fill this upstream: `sync.allow`
 */
export function settleClaims(services: Iterable<ServiceFact>, allows: (claim: Claim) => boolean): Settled {
  const all: Claim[] = []
  const problems = new Map<string, string[]>()
  const tell = (service: ServiceFact, why: string) => {
    const name = serviceName(service)
    const known = problems.get(name)
    if (!known) problems.set(name, [why])
    else if (known.length < MOST_NAMED) known.push(why)
  }
  for (const service of services) {
    const read = claimsOf(service)
    for (const problem of read.problems) tell(service, problem)
    for (const claim of read.claims) {
      if (allows(claim)) all.push(claim)
      else tell(service, `sync.allow does not let namespace ${service.namespace} fill ${claim.holder}`)
    }
  }
  const claims = new Map<HolderKey, Claim>()
  for (const [holder, rivals] of Map.groupBy(all, claim => claim.holder)) {
    const kept = rivals.reduce((a, b) => (isOlder(b, a) ? b : a))
    claims.set(holder, kept)
    for (const { service } of rivals)
      if (service !== kept.service)
        tell(service, `${holder} follows ${serviceName(kept.service)}: this claim changes nothing`)
  }
  const joined = [...problems].map(([name, whys]) => [name, whys.join('; ')] as const)
  return { claims, problems: new Map(joined) }
}

/** The uid decides between Services of the same second, so that all agents choose the same one. */
const isOlder = ({ service: a }: Claim, { service: b }: Claim): boolean =>
  a.createdAt === b.createdAt ? a.uid < b.uid : a.createdAt < b.createdAt

/** A node that is missing. */
export interface NewNode {
  readonly key: NodeKey
  /** The node whose weight and priority it gets; `undefined`: no node of its Service is listed. */
  readonly like: HolderNode | undefined
}

/** The edits of one holder, relative to the object that was read. */
interface SyncEdit {
  readonly add: readonly NewNode[]
  readonly remove: readonly NodeKey[]
}

interface SyncInput {
  /** See `membersOf`. */
  readonly members: ReadonlySet<NodeKey>
  readonly holder: Holder
  /** Whether it is, or was, an endpoint of the claim's Service. */
  readonly isOwn: (node: HolderNode) => boolean
  /** Whether it is a pod's node of another Service, or of none. */
  readonly isPods: (node: HolderNode) => boolean
  /** Whether no pod has this node's address now. */
  readonly isGone: (node: HolderNode) => boolean
  /** Whether a drain removes the node. A drain has its own order: first the barrier, then the removal. */
  readonly isDraining: (node: HolderNode) => boolean
}

/**
 * The edits after which the holder lists the members. A node that is not a pod's (a machine, a domain name) stays unchanged, with its
 * weight and metadata.
 *
 * If no member is left, nodes whose pods exist stay. An unready pod is better than a 503, and if every pod of a Service becomes unready at
 * once, the pods are seldom the cause. Nodes whose pods are gone are removed, even the last one. No pod answers there: a request would wait
 * for the connect timeout instead of getting its 503 at once. Besides, another pod will get the address.
 */
export function planSync({ members, holder, isOwn, isPods, isGone, isDraining }: SyncInput): SyncEdit {
  const listed = new Set(holder.nodes.map(node => node.key))
  // Other nodes of a mixed list (a machine, a backup of lower priority) are no model for a pod.
  const own = holder.nodes.filter(isOwn)
  const like = own.find(node => node.weight > 0) ?? own[0]
  const add = [...members].filter(key => !listed.has(key)).map(key => ({ key, like }))
  const remove = holder.nodes
    .filter(node => !members.has(node.key) && (isOwn(node) || isPods(node)) && !isDraining(node))
    .filter(node => members.size > 0 || isGone(node))
    .map(node => node.key)
  return { add, remove }
}
