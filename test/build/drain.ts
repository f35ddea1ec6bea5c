import type {
  Drain,
  Drains,
  Hook,
  Idle,
  Proven,
  Verdict,
  DrainSettings,
  Seen
} from '../../agent/rules/drain/drain.ts'
import type { PodFact } from '../../agent/rules/drain/facts.ts'
import { begin, NOTHING_YET } from '../../agent/rules/drain/step.ts'

export const DRAIN_SETTINGS: DrainSettings = { reserveMs: 5_000, ghostMs: 600_000 }

/** The loop's knowledge of an ordinary pod; a test states only the differences. */
export const seen = (pod: PodFact, differs: Partial<Omit<Seen, 'pod'>> = {}): Seen => ({
  pod,
  gone: false,
  current: true,
  hookAt: undefined,
  calls: [],
  routed: [],
  listed: true,
  verdict: undefined,
  ...differs
})

export const hook = (pod: PodFact, differs: Partial<Hook> = {}): Hook => ({
  id: 'hook-1',
  uid: pod.uid,
  receivedAt: 0,
  timeoutMs: undefined,
  ...differs
})

/** The drain that these facts start at `now`; throws if they start none. */
export function drainOf(facts: Seen, now = 0, settings = DRAIN_SETTINGS): Drain {
  const drain = begin(facts, now, settings)
  if (!drain) throw new Error('these facts start no drain')
  return drain
}

export const drainsOf = (drains: Iterable<Drain>): Drains =>
  new Map([...drains].map(drain => [drain.uid, drain]))

export const waiting = (differs: Partial<Extract<Verdict, { kind: 'waiting' }>> = {}): Verdict => ({
  ...NOTHING_YET,
  why: 'waiting',
  ...differs
})

/** A gateway that has confirmed. */
export const IDLE: Idle = { name: 'gw-1', grade: 'barrier', at: 0, why: '' }

export const proven = (differs: Partial<Proven> = {}): Proven =>
  ({
    kind: 'proven',
    grade: 'barrier',
    places: 1,
    forced: false,
    succeeded: [],
    at: 0,
    why: 'proven',
    gateways: [IDLE],
    holders: [],
    ...differs
  }) as Proven
