import { type Millis, type NodeKey, type PodUid, nodeKey } from '../../rules/drain/facts.ts'
import type { Successors } from '../../rules/plan/successors.ts'
import type { BarrierEntry, BarrierState } from '../apisix/barrier-wire.ts'
import { addressOf } from '../apisix/holders.ts'
import type { Stop } from '../../rules/drain/drain.ts'

/** The entry that the deny-list of one gateway should hold for one drain. */
export interface DesiredEntry {
  readonly uid: PodUid
  /** Bare hosts, or hosts with ports if the pod shares its host's address. */
  readonly nodes: readonly NodeKey[]
  readonly state: 'draining' | 'sealed'
  /** The tags of the words that allow the seal, one for each node. If a word has changed, the gateway does not seal. Absent: it seals. */
  readonly sealIf?: readonly string[]
  /** The successors' nodes, by port of the pod. The same object until a successor changes. Absent: not known. */
  readonly successors?: Successors | undefined
  /** Whether the address of a node that a gateway names as a successor is another pod's by now, whoever has named it. */
  readonly isTaken?: (node: NodeKey) => boolean
  /** Kept as the gateways hold it: neither put nor renewed nor removed, because the agent cannot see whose the address is. */
  readonly frozen?: boolean
  /** Only a restart so far: which containers stop (`stopText`), and when the latest of their hooks called. */
  readonly stop?: { readonly text: string; readonly at: Millis } | undefined
  /** The ways to the pod without its address to look for. The first of its entries asks for all of them. */
  readonly ways?: readonly string[]
  /** A hook still waits for this drain. Then the entry is polled, and after its seal long-polled while requests are in flight. */
  readonly watch: boolean
}

/** The entry that the deny-list of every gateway should hold for one drain. */
export interface DesiredDrain extends Omit<DesiredEntry, 'sealIf'> {
  /**
   * With `sealed`: the tags of the words that allow the seal, for each gateway. On a gateway without tags, the entry stays
   * draining. Absent: the entry is sealed everywhere, whatever the workers report.
   */
  readonly agreed?: ReadonlyMap<string, readonly string[]>
}

/** A drain's entry as one gateway should hold it. */
export function entryAt(desired: DesiredDrain, gatewayId: string): DesiredEntry {
  // Hundreds of entries may be kept, and few are still to be agreed on.
  if (!desired.agreed) return desired
  const { agreed, ...drain } = desired
  const sealIf = agreed.get(gatewayId)
  return sealIf ? { ...drain, sealIf } : { ...drain, state: 'draining' }
}

export const sameList = <T>(a: readonly T[] = [], b: readonly T[] = []): boolean =>
  a.length === b.length && a.every((one, i) => one === b[i])

export const sameNodes = (
  { nodes: a }: Pick<DesiredEntry, 'nodes'>,
  { nodes: b }: Pick<DesiredEntry, 'nodes'>
): boolean => sameList(a, b)

/** Whether a put of one entry equals a put of the other. The state and the tags change nothing in a gateway that has sealed the entry. */
export const samePut = (a: DesiredEntry, b: DesiredEntry, isSealed = false): boolean =>
  a === b ||
  ((isSealed || (a.state === b.state && sameList(a.sealIf, b.sealIf))) &&
    sameNodes(a, b) &&
    a.successors === b.successors &&
    a.stop?.text === b.stop?.text &&
    sameList(a.ways, b.ways))

/** The entries of all drains as one gateway should hold them. One that is as `before` stays the same object, so it is not put again. */
export const entriesAt = (
  gatewayId: string,
  drains: readonly DesiredDrain[],
  before: ReadonlyMap<PodUid, DesiredEntry>
): ReadonlyMap<PodUid, DesiredEntry> =>
  new Map(
    drains.map(drain => {
      const entry = entryAt(drain, gatewayId)
      const known = before.get(entry.uid)
      return [entry.uid, known && isSame(known, entry) ? known : entry]
    })
  )

const isSame = (a: DesiredEntry, b: DesiredEntry): boolean =>
  a.watch === b.watch && a.frozen === b.frozen && samePut(a, b)

/**
 * The entries of this round. One that is as in the last round stays the same object. A put that changes only the successors of a sealed
 * entry would delay the seals of new entries, so the entry keeps its list until
 * - all its nodes have ended: a chain of entries may have eight steps,
 * - one of them must go: an ended one stays while it has an entry of its own, because the plugin follows that entry's successors,
 * - or no entry names a new one: one entry for each, as a denied node has one stand-in at a time.
 *
 * @param isNews whether pods or entries have changed since `last`, the result of the last round
 */
export function settled(
  entries: readonly DesiredDrain[],
  last: readonly DesiredDrain[],
  isNews: boolean
): readonly DesiredDrain[] {
  const before = new Map(last.map(entry => [entry.uid, entry]))
  const denied = new Set(isNews ? entries.flatMap(({ nodes }) => nodes) : [])
  const isDenied = (node: NodeKey): boolean => denied.has(node) || denied.has(addressOf(node).host)
  const mayKeep = (entry: DesiredDrain, known: DesiredDrain): boolean =>
    known.state === 'sealed' &&
    entry.state === 'sealed' &&
    sameNodes(known, entry) &&
    (!isNews || (haveCommon(known, entry) && lostSuccessors(known, entry).every(isDenied)))
  const kept = new Map<DesiredDrain, DesiredDrain>()
  for (const entry of entries) {
    const known = before.get(entry.uid)
    if (known && known.successors !== entry.successors && mayKeep(entry, known)) kept.set(entry, known)
  }
  if (isNews) for (const entry of namingMore(entries, kept)) kept.delete(entry)
  return entries.map(entry => {
    const known = before.get(entry.uid)
    const now = kept.has(entry) ? { ...entry, successors: kept.get(entry)?.successors } : entry
    return known && !known.agreed && !now.agreed && isSame(known, now) ? known : now
  })
}

/** Whether a successor that is named stays one, or there are none. */
const haveCommon = (known: DesiredDrain, now: DesiredDrain): boolean =>
  !hasSuccessors(now) || !new Set(successorsOf(known)).isDisjointFrom(new Set(successorsOf(now)))

/** Of the entries that keep a list: those that would name a node that no entry names. */
function namingMore(
  entries: readonly DesiredDrain[],
  kept: ReadonlyMap<DesiredDrain, DesiredDrain>
): readonly DesiredDrain[] {
  const named = new Set(entries.flatMap(entry => successorsOf(kept.get(entry) ?? entry)))
  const more = [...kept.keys()].filter(e => !e.frozen && successorsOf(e).some(node => !named.has(node)))
  const unnamed = new Set(more.flatMap(successorsOf)).difference(named)
  const count = (entry: DesiredDrain): number => successorsOf(kept.get(entry) ?? entry).length
  return more.toSorted((a, b) => count(a) - count(b)).slice(0, unnamed.size)
}

/** The entries to put for one drain, one for each address. @param now of the put */
export function entriesOf(
  { uid, nodes, state, sealIf, successors = {}, stop, ways = [] }: DesiredEntry,
  { ttlMs = 0, now = 0, withSuccessors = false } = {}
): BarrierEntry[] {
  const ttl = Math.ceil(ttlMs / 1000)
  const stopped = stop && { stop: stop.text, stoppedFor: Math.max(0, now - stop.at) / 1000 }
  return nodes.map((node, i) => {
    const { host, port } = addressOf(node)
    const tag = sealIf?.[i]
    return {
      uid,
      ip: host,
      ...(port === undefined ? {} : { port }),
      state,
      ttl,
      ...stopped,
      ...(tag !== undefined && { sealIf: tag }),
      ...(i === 0 && ways.length > 0 && { ways }),
      ...(withSuccessors && { successors: ofFamily(successors, host) })
    }
  })
}

export const hasSuccessors = ({ successors = {} }: Pick<DesiredEntry, 'successors'>): boolean =>
  Object.keys(successors).length > 0

export const successorsOf = ({ successors = {} }: Pick<DesiredEntry, 'successors'>): readonly NodeKey[] =>
  Object.values(successors).flat()

/** The successors that `before` names and `now` does not. */
const lostSuccessors = (
  { successors: before = {} }: Pick<DesiredEntry, 'successors'>,
  { successors: now = {} }: Pick<DesiredEntry, 'successors'>
): readonly NodeKey[] =>
  before === now
    ? []
    : Object.entries(before).flatMap(([port, nodes]) => nodes.filter(node => !now[port]?.includes(node)))

/** A gateway may have only one address family, so an address gets successors of its own family. */
const ofFamily = (successors: Successors, host: string): Successors =>
  Object.fromEntries(
    Object.entries(successors).map(([port, nodes]) => [
      port,
      nodes.filter(node => node.startsWith('[') === host.includes(':'))
    ])
  )

/** A sealed entry with successors that was in a gateway when the agent first read it. */
export interface InheritedEntry {
  readonly uid: PodUid
  /** The nodes of the entry, each with the successors that the entry named. */
  readonly nodes: ReadonlyMap<NodeKey, Successors>
  /** An upper bound of the time of the last put, by the agent's clock. */
  readonly putAt: Millis
}

/** Containers that stop, of a pod that may stay, according to a sealed entry: text from outside. */
export interface InheritedStop {
  readonly uid: PodUid
  readonly ips: readonly string[]
  readonly text: string
  readonly stops: readonly Stop[]
}

/** Which containers stop, the same text at every agent; empty if it is too long for an entry. */
export function stopText(stops: readonly Stop[]): string {
  const text = stops
    .map(({ container = '', run }) => `${container}:${run}`)
    .sort()
    .join(';')
  return Buffer.byteLength(text) <= 1024 ? text : ''
}

/** The stops in a gateway's list. */
export function stopsIn(list: readonly BarrierState[], askedAt: Millis): Map<PodUid, InheritedStop> {
  const found = new Map<PodUid, InheritedStop>()
  for (const { uid, ip, state, stop: text, stoppedFor = 0 } of list) {
    if (state !== 'sealed' || !text) continue
    const pod = uid as PodUid
    const stops = text.split(';').map(one => {
      const end = one.indexOf(':')
      return {
        container: one.slice(0, end) || undefined,
        run: one.slice(end + 1),
        at: askedAt - stoppedFor * 1000
      }
    })
    found.set(pod, { uid: pod, ips: [ip, ...(found.get(pod)?.ips ?? [])], text, stops })
  }
  return found
}

/** An upper bound of the time of an entry's last put, by the agent's clock. @param ttlMs the time to live with which agents put entries */
export const putBefore = ({ ttl }: Pick<BarrierState, 'ttl'>, ttlMs: number, now: Millis): Millis =>
  now - Math.max(ttlMs - ttl * 1000, 0)

/**
 * Collects the sealed entries that another agent, or this agent before its restart, has put. Only the gateways remember them, until
 * they expire.
 * @param ttlMs the time to live with which agents put entries
 */
export function createInheritance(ttlMs: number, now: () => Millis, tell: () => void) {
  let found = new Map<PodUid, InheritedEntry>()

  return {
    /** Takes the first list of a gateway's entries. */
    read(list: readonly BarrierState[]) {
      for (const { uid, ip, port, state, ttl, successors = {}, stop } of list) {
        if (state !== 'sealed' || stop !== undefined || Object.keys(successors).length === 0) continue
        const pod = uid as PodUid
        const known = found.get(pod)
        const putAt = Math.min(putBefore({ ttl }, ttlMs, now()), known?.putAt ?? Infinity)
        const nodes = new Map(known?.nodes).set(nodeKey(ip, port), successors)
        found.set(pod, { uid: pod, nodes, putAt })
      }
      if (found.size > 0) tell()
    },
    /** The entries that were read since the last call. */
    take(): readonly InheritedEntry[] {
      const taken = [...found.values()]
      found = new Map()
      return taken
    }
  }
}
