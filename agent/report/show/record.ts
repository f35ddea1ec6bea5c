import type { Clock } from '../../base/clock.ts'
import { jsonOr } from '../../base/read.ts'
import { isRiskless, type Status, type Observer } from '../../round/gather/drain-status.ts'
import type { Drain, Grade, Proven, Ack } from '../../rules/drain/drain.ts'
import type { Millis, PodUid } from '../../rules/drain/facts.ts'
import { drainName, lagOf, type AckView, type DrainView, type DrainLag } from '../snapshot/drain-view.ts'
import type { Totals } from '../snapshot/snapshot.ts'
import { EVIDENCE } from '../metrics/metric-registry.ts'
import { z } from 'zod'
import type { ToldAnswers } from '../../gateway/barrier/entry-table.ts'

interface RecordOptions {
  readonly clock: Clock
  /** The sleep that an answered hook replaces, in ms. */
  readonly sleepMs: number
  /** The name of this agent. */
  readonly name: string
  readonly shown: (drain: Drain, status: Status) => DrainView
}

/** The past of this agent: finished drains and answers, counts, and the time of the last round. The only owner of that state. */
export function createRecord({ clock, sleepMs, name, shown }: RecordOptions) {
  let history: History = EMPTY
  let answered = { of: history.acks, at: new Map<string, Millis>() }
  let lastRoundAt = clock.now()
  const graded: Record<Grade, number> = { barrier: 0, observed: 0 }
  const totals = { expired: 0, hooks: 0 }

  const observer: Observer = {
    drain(before, after, status) {
      if (isProven(after) && !isProven(before)) {
        history = withProof(history, shown(after, status))
        if (after.verdict.places !== 0) graded[after.verdict.grade] += 1
      }
      if (before && !after) history = withPast(history, over(shown(before, status), clock.now()))
      if (after?.phase === 'expired' && !isRiskless(status)) totals.expired += 1
    },
    ack(ack) {
      totals.hooks += 1
      history = withAck(history, { at: clock.now(), by: name, ack }, sleepMs)
    },
    round: () => void (lastRoundAt = clock.now())
  }
  return {
    observer,
    history: () => history,
    /** When the hook of this pod was answered, by whatever agent; `undefined`: not known. */
    answeredAt(uid: string): Millis | undefined {
      if (answered.of !== history.acks)
        answered = { of: history.acks, at: new Map(history.acks.map(({ at, ack }) => [ack.pod.uid, at])) }
      return answered.at.get(uid)
    },
    /** The gateways tell of an answer of another agent. */
    heard: (answer: AckView) => void (history = withHeard(history, answer)),
    totals: (): Totals => ({ ...totals, graded: { ...graded }, savedMs: history.savedMs }),
    lastRoundAt: () => lastRoundAt
  }
}

/** A drain whose pod is gone. If no holder lists the pod any more, the round that sees it gone also forgets its drain. */
const over = (drain: DrainView, now: number): DrainView =>
  drain.phase === 'undone' || drain.moments.goneAt !== null
    ? drain
    : { ...drain, phase: 'gone', moments: { ...drain.moments, goneAt: now } }

/** A pod can disappear in the same round that proves its drain. */
const isProven = (
  drain: Drain | undefined
): drain is Extract<Drain, { readonly verdict: unknown }> & { readonly verdict: Proven } =>
  drain !== undefined && drain.phase !== 'undone' && drain.verdict.kind === 'proven'

/** How many finished drains, older ones that were not proved, answers, and samples of the lag are kept. */
export const LIMITS = { past: 500, unproved: 50, acks: 200, lags: 2000 } as const

/** The past, kept for display, newest first. Bounded; lost when the agent restarts. */
interface History {
  /** Finished drains. A large rollout does not push out those that were not proved. */
  readonly past: readonly DrainView[]
  readonly acks: readonly AckView[]
  /** One for each pod. */
  readonly lags: readonly DrainLag[]
  /** See `Totals.savedMs`. */
  readonly savedMs: number
}

export const EMPTY: History = { past: [], acks: [], lags: [], savedMs: 0 }

/** Every gateway has confirmed a drain. Adds its lag, if the gateways were seen to confirm and one of them routed to the pod. */
export function withProof(history: History, drain: DrainView): History {
  const ms = lagOf(drain.moments)
  const at = drain.moments.sealedAt ?? drain.moments.confirmedAt
  const grade = drain.verdict?.grade ?? null
  if (ms === null || at === null || grade === null || isNotRouted(drain)) return history
  const { uid, namespace, owner } = drain
  const sample = { at, ms, uid, namespace, owner }
  // A pod that was taken back after a proof can be proved again.
  const others = history.lags.filter(lag => lag.uid !== uid)
  return { ...history, lags: onTop(sample, others, LIMITS.lags) }
}

/** The drain is over, and no round will show it again. A pod to which no gateway routed is kept only if it had a hook. */
export function withPast(history: History, drain: DrainView): History {
  if (isNotRouted(drain) && drain.moments.ackAt === null) return history
  const past = [drain, ...history.past.filter(one => drainName(one) !== drainName(drain))]
  const older = past.slice(LIMITS.past).filter(isUnproved)
  return { ...history, past: [...past.slice(0, LIMITS.past), ...older.slice(0, LIMITS.unproved)] }
}

/** Whether no gateway ever routed to it, as with a pod of a Job. It has no sync lag. */
const isNotRouted = ({ verdict }: Pick<DrainView, 'verdict'>): boolean => verdict?.places === 0

/** Whether its deadline, or its end, came before a proof; unless it was the last endpoint, or nothing led to it. */
const isUnproved = ({ phase, verdict, unlisted }: DrainView): boolean =>
  phase !== 'undone' && verdict?.kind === 'waiting' && !verdict.lastEndpoint && !unlisted

/**
 * Records an answered hook. Saved time is the replaced sleep minus the wait: negative if the proof took longer.
 */
export const withAck = (history: History, { at, by, ack }: AckView, sleepMs: number): History => {
  const { pod, elapsedMs, status, result, evidence, why } = ack
  const shown = { at, by, ack: { pod, elapsedMs, status, result, evidence, why } }
  // Its own answer is certain, and another agent's is text from outside.
  const others = history.acks.filter(known => known.by === by || known.ack.pod.uid !== pod.uid)
  return {
    ...history,
    acks: onTop(shown, others, LIMITS.acks),
    savedMs: history.savedMs + sleepMs - elapsedMs
  }
}

/** Adds an answer from a gateway: another agent's, or this one's before its restart. */
const withHeard = (history: History, heard: AckView): History =>
  history.acks.some(({ ack }) => ack.pod.uid === heard.ack.pod.uid)
    ? history
    : {
        ...history,
        past: history.past.map(drain =>
          drain.uid === heard.ack.pod.uid && drain.moments.ackAt === null
            ? { ...drain, moments: { ...drain.moments, ackAt: heard.at } }
            : drain
        ),
        acks: [...history.acks, heard].toSorted((a, b) => b.at - a.at).slice(0, LIMITS.acks)
      }

const onTop = <T>(newest: T, list: readonly T[], limit: number): readonly T[] => [
  newest,
  ...list.slice(0, limit - 1)
]

const MOST_WHY = 200

/** Other agents, and whoever else has the token of a gateway, write this text: it is shown, and nothing rests on it. */
const stored = z.object({
  namespace: z.string().max(63),
  pod: z.string().max(253),
  status: z.literal([200, 503]),
  result: z.string().regex(/^[a-z-]{1,32}$/),
  evidence: z.enum(EVIDENCE),
  why: z.string().max(MOST_WHY),
  elapsedMs: z.number().min(0),
  by: z.string().max(253)
})

/** The answers that this agent publishes, and those that it has read, as views. Ages, because the clocks of agents differ. */
export interface Answers extends ToldAnswers {
  note(ack: Ack, at: number): void
  /** What other agents, or this one before its restart, have answered. Each is returned once. */
  take(): readonly AckView[]
}

/** An answer is published for this long, in ms: by then its entry is in every gateway, or it has none. */
const KEPT_MS = 600_000
/** The most answers of others that are remembered. */
const MOST = 2000

/** @param by the name of this agent */
export function createAnswers(by: string): Answers {
  const own = new Map<PodUid, { readonly at: number; readonly text: string }>()
  const known = new Set<string>()
  let heard: AckView[] = []
  return {
    own,
    note(ack, at) {
      for (const [uid, answer] of own) if (answer.at < at - KEPT_MS) own.delete(uid)
      const uid = ack.pod.uid as PodUid
      if (!own.has(uid)) own.set(uid, { at, text: textOf(ack, by) })
    },
    read(list, askedAt) {
      for (const { uid, answer, answeredFor = 0 } of list) {
        if (answer === undefined || known.has(uid) || own.has(uid as PodUid)) continue
        known.add(uid)
        if (known.size > MOST) known.delete(known.values().next().value!)
        heard.push(...answerOf({ uid, text: answer, at: askedAt - answeredFor * 1000 }))
      }
    },
    take() {
      const taken = heard
      heard = []
      return taken
    }
  }
}

/** An answer as the text that a gateway passes on to the other agents: at most 1024 bytes. */
function textOf({ pod, status, result, evidence, why, elapsedMs }: Ack, by: string): string {
  const { namespace, name } = pod
  const one = { namespace, pod: name, status, result, evidence, elapsedMs: Math.round(elapsedMs), by }
  const text = JSON.stringify({ ...one, why: why.slice(0, MOST_WHY) })
  return Buffer.byteLength(text) <= 1024 ? text : JSON.stringify({ ...one, why: '' })
}

interface Heard {
  readonly uid: string
  readonly text: string
  readonly at: number
}

/** The answer of another agent; empty if the text is not one. */
function answerOf({ uid, text, at }: Heard): readonly AckView[] {
  const { success, data } = stored.safeParse(jsonOr(() => JSON.parse(text) as unknown))
  if (!success) return []
  const { namespace, pod: name, by, ...rest } = data
  return [{ at, by, ack: { pod: { namespace, name, uid }, ...rest } }]
}
