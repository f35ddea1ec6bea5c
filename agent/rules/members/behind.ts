import type { Millis, NodeKey } from '../drain/facts.ts'
import type { Holder } from '../plan/holder.ts'

/** Whether one gateway routes by a holder's present revision. */
export interface GatewayHas {
  readonly name: string
  /** Since when it routes by that revision, on the agent's clock; `undefined`: it is not known to. */
  readonly at: Millis | undefined
  /** Why it is known to lack the revision. Empty if it has it, was not read since the revision was seen, or cannot show this holder. */
  readonly why: string
}

/** A gateway that has not been seen to route by the present revision. */
interface Waiting {
  /** The time of the oldest change that the gateway lacks: in Kubernetes, or of a write whose reason the agent has not seen. */
  readonly since: Millis
  /** Why it lacks the change; empty while the agent has not read the gateway again. */
  readonly why: string
}

/** The clocks of one holder: how far its owner and its gateways are behind Kubernetes. */
export interface Clocks {
  readonly revision: number
  /** Nodes in which the holder differs from the ready endpoints, each with the time of the change. */
  readonly nodes: ReadonlyMap<NodeKey, Millis>
  /** The time of the oldest change that the owner has not written. A later rollout replaces the nodes, and not this time. */
  readonly owes: Millis | undefined
  /** When the agent first saw this revision. */
  readonly wroteAt: Millis
  /** The gateways that lack the revision, by name. */
  readonly waiting: ReadonlyMap<string, Waiting>
}

/** The clocks of a holder that is seen for the first time. The gateways are asked for its revision. */
export const firstSeen = (revision: number, gateways: readonly string[], now: Millis): Clocks => ({
  revision,
  nodes: new Map(),
  owes: undefined,
  wroteAt: now,
  waiting: new Map(gateways.map(name => [name, { since: now, why: '' }]))
})

/** A holder as it is now, compared with the ready endpoints. */
interface AtOwner {
  readonly revision: number
  /** The nodes in which it differs, each with the time of the change. */
  readonly differs: ReadonlyMap<NodeKey, Millis>
  /** Its owner has added a node: it has written what it had to write until then. A removal alone can be the agent's. */
  readonly gained: boolean
  /** It lists a pod that is not Ready any more, or gone. */
  readonly stale: boolean
}

/**
 * The clocks after a listing of the holder. A difference between ready endpoints and the Admin API starts the clock of a node, which keeps
 * its first time. If a new revision settles nodes, every gateway gets the earliest of their clocks. A gateway that still lacks an older
 * change keeps the older clock.
 */
export function seenAtOwner(
  before: Clocks,
  { revision, differs, gained, stale }: AtOwner,
  gateways: readonly string[],
  now: Millis
): Clocks {
  const nodes = new Map([...differs].map(([node, at]) => [node, before.nodes.get(node) ?? at]))
  const oldest = Math.min(...nodes.values(), gained ? Infinity : (before.owes ?? Infinity))
  const isOver = nodes.size === 0 && (gained || !stale)
  const owes = isOver || oldest === Infinity ? undefined : oldest
  if (revision === before.revision) return { ...before, nodes, owes }
  const settled = Math.min(...[...before.nodes].flatMap(([node, at]) => (nodes.has(node) ? [] : [at])))
  const changedAt = settled === Infinity ? now : settled
  const waiting = new Map(
    gateways.map(name => {
      const { since = now, why = '' } = before.waiting.get(name) ?? {}
      return [name, { since: Math.min(since, changedAt), why }]
    })
  )
  return { ...before, revision, nodes, owes, wroteAt: now, waiting }
}

/** Stops the clock of each gateway that has the revision, and of each gateway that is not in the list any more. */
export function seenAtGateways(before: Clocks, gateways: readonly GatewayHas[]): Clocks {
  const waiting = new Map<string, Waiting>()
  for (const { name, at, why } of gateways) {
    const known = before.waiting.get(name)
    if (known && at === undefined) waiting.set(name, { ...known, why })
  }
  return { ...before, waiting }
}

/** The facts about addresses without a pod. */
export interface AddressesKnown {
  /** Whether a pod has the address. */
  isTaken(host: string): boolean
  /** When the last pod with this address was seen to end; `undefined`: never. */
  endedAt(host: string): Millis | undefined
  /** For an address in a range of pods: when it was first seen without one; `undefined` for others. */
  freeSince(host: string): Millis | undefined
}

/** A node whose pod is gone. */
export interface Ghost {
  readonly node: NodeKey
  /** When its pod was seen to end, or when the address was first seen without a pod. */
  readonly since: Millis
}

/**
 * The ghosts of one holder. A node without a pod may also be a machine, or a pod of another cluster. The node is a ghost if the agent saw
 * the pod with its address end. It is a ghost too if only pods have such addresses, and no pod has had this address for `afterMs`.
 */
export function ghostsIn(
  holder: Holder,
  known: AddressesKnown,
  now: Millis,
  afterMs: number
): readonly Ghost[] {
  return holder.nodes.flatMap(({ key: node, host }) => {
    if (known.isTaken(host)) return []
    const since = known.freeSince(host) ?? Infinity
    const at = known.endedAt(host) ?? (now < since + afterMs ? undefined : since)
    return at === undefined ? [] : [{ node, since: at }]
  })
}

/** The revisions of etcd that a worker reports as applied. */
interface Applied {
  /** The highest over all kinds of object; 0: none was read yet. */
  readonly revision?: number | null | undefined
  /** By kind of object, for the kinds that this APISIX has. */
  readonly revisions?: Readonly<Record<string, number>> | undefined
}

/**
 * The revision up to which a worker has applied one kind of object; `undefined` if it has not reported that. APISIX applies each kind
 * by itself (`apisix/core/config_etcd.lua`). After etcd was compacted or restored, one kind is read anew, while another waits seconds
 * for its next try. So the highest revision of all kinds proves nothing about one of them.
 */
const appliedOf = ({ revision, revisions }: Applied, kind: string): number | undefined =>
  (revisions?.[kind] ?? revision) || undefined

/** The revision up to which all of these workers have applied one kind of object; 0: some has not reported that. */
export const slowestOf = (workers: readonly Applied[], kind: string): number =>
  workers.reduce((least, worker) => Math.min(least, appliedOf(worker, kind) ?? 0), Infinity)
