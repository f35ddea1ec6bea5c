import type { Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { BarrierEntry, BarrierState } from '../gateway/barrier-api.ts'
import { addressOf } from '../gateway/nodes.ts'
import type { BarrierReading } from './evidence.ts'

/** What the deny-list of every gateway should hold for one drain. */
export interface DesiredEntry {
  readonly uid: PodUid
  /** Bare hosts, or hosts with ports where the pod shares its host's address. */
  readonly nodes: readonly NodeKey[]
  readonly state: 'draining' | 'sealed'
  /** Still being waited for: its in-flight is long-polled. */
  readonly watch: boolean
}

/** One entry per address. */
export function entriesOf({ uid, nodes, state }: DesiredEntry, ttlMs: number): BarrierEntry[] {
  const ttl = Math.ceil(ttlMs / 1000)
  return nodes.map(node => {
    const { host, port } = addressOf(node)
    return { uid, ip: host, ...(port === undefined ? {} : { port }), state, ttl }
  })
}

/** The circumstances of an answer. */
export interface Told {
  readonly at: Millis
  readonly instance: string
  readonly fit: boolean
  /** The request began, or was carried out, after the seal: what it counts is the fourth step of the guarantee. */
  readonly afterSeal: boolean
}

/** What an answer says of one drain: its addresses together are as far as the one that is least so. */
export function readingOf(
  wanted: DesiredEntry,
  answered: readonly BarrierState[],
  told: Told
): BarrierReading {
  const states = entriesOf(wanted, 0).map(e =>
    answered.find(s => s.uid === e.uid && s.ip === e.ip && s.port === e.port)
  )
  const present = states.filter(s => s !== undefined)
  const sum = (of: (state: BarrierState) => number) => present.reduce((total, state) => total + of(state), 0)
  const entry =
    present.length < states.length || present.length === 0
      ? 'absent'
      : present.every(s => s.state === 'sealed')
        ? 'sealed'
        : 'draining'
  return {
    at: told.at,
    instance: told.instance,
    fit: told.fit,
    entry,
    inflight: { requests: sum(s => s.inflight.requests), long: sum(s => s.inflight.long) },
    bypasses: sum(s => s.bypasses),
    readAfterSeal: told.afterSeal && entry === 'sealed',
    problem: ''
  }
}

/** What a gateway that could not be asked says: what it said last, if anything, with the reason. It proves nothing. */
export function unanswered(last: BarrierReading | undefined, at: Millis, problem: string): BarrierReading {
  const nothing = {
    at,
    instance: '',
    fit: false,
    entry: 'absent',
    bypasses: 0,
    readAfterSeal: false
  } as const
  return { ...(last ?? { ...nothing, inflight: { requests: 0, long: 0 } }), problem }
}
