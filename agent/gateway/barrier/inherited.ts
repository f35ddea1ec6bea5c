import type { Stop } from '../../rules/drain/drain.ts'
import type { BarrierState } from '../apisix/barrier-wire.ts'
import { nodeKey, type Millis, type NodeKey, type PodUid } from '../../rules/drain/facts.ts'
import type { Successors } from '../../rules/plan/successors.ts'

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

/** The stops that a gateway's list tells. */
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

interface Inheritance {
  /** Takes the list of a gateway's entries. Only the first list of each gateway counts. */
  read(id: string, list: readonly BarrierState[]): void
  /** The entries that were read since the last call. */
  take(): readonly InheritedEntry[]
  /** Their addresses, also each once: the pods of such entries have ended. */
  takeHosts(): ReadonlySet<string>
}

/**
 * Collects the sealed entries that another agent, or this agent before its restart, has put. Only the gateways remember them, until
 * they expire.
 * @param ttlMs the time to live with which agents put entries
 */
export function createInheritance(ttlMs: number, now: () => Millis, tell: () => void): Inheritance {
  const known = new Set<string>()
  let found = new Map<PodUid, InheritedEntry>()
  let hosts = new Set<string>()

  const add = (entries: readonly BarrierState[]): void => {
    for (const { uid, ip, port, state, ttl, successors = {}, stop } of entries) {
      if (state !== 'sealed' || stop !== undefined || Object.keys(successors).length === 0) continue
      const pod = uid as PodUid
      const known = found.get(pod)
      const putAt = Math.min(now() - Math.max(ttlMs - ttl * 1000, 0), known?.putAt ?? Infinity)
      const nodes = new Map(known?.nodes).set(nodeKey(ip, port), successors)
      found.set(pod, { uid: pod, nodes, putAt })
      hosts.add(ip)
    }
    if (found.size > 0) tell()
  }

  return {
    read(id, list) {
      if (known.has(id)) return
      known.add(id)
      add(list)
    },
    take() {
      const taken = [...found.values()]
      found = new Map()
      return taken
    },
    takeHosts() {
      const taken = hosts
      hosts = new Set()
      return taken
    }
  }
}
