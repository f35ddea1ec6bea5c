import type { Clock } from '../../base/clock.ts'
import type { Observer } from '../../round/observer.ts'
import { isRiskless, type Memory } from '../../round/gather/memory.ts'
import type { Drain, Grade, Proven } from '../../rules/drain/drain.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { AckView, DrainView } from '../snapshot/drain-view.ts'
import type { Totals } from '../snapshot/snapshot.ts'
import { EMPTY, withAck, withHeard, withPast, withProof, type History } from './history.ts'

/** The past of this agent: finished drains and answers, counts, and the time of the last round. The only owner of that state. */
interface AgentRecord {
  readonly observer: Observer
  history(): History
  totals(): Totals
  /** The gateways tell of an answer of another agent. */
  heard(answer: AckView): void
  /** When the hook of this pod was answered, by whatever agent; `undefined`: not known. */
  answeredAt(uid: string): Millis | undefined
  lastRoundAt(): Millis
}

interface RecordOptions {
  readonly clock: Clock
  /** The sleep that an answered hook replaces, in ms. */
  readonly sleepMs: number
  /** The name of this agent. */
  readonly name: string
  readonly shown: (drain: Drain, memory: Memory) => DrainView
}

export function createRecord({ clock, sleepMs, name, shown }: RecordOptions): AgentRecord {
  let history: History = EMPTY
  let answered = { of: history.acks, at: new Map<string, Millis>() }
  let lastRoundAt = clock.now()
  const graded: Record<Grade, number> = { barrier: 0, observed: 0 }
  const totals = { drains: 0, proven: 0, expired: 0, undone: 0, hooks: 0, rounds: 0 }

  return {
    observer: {
      drain(before, after, memory) {
        if (!before && after) totals.drains += 1
        if (isProven(after) && !isProven(before)) {
          history = withProof(history, shown(after, memory))
          if (after.verdict.places !== 0) graded[after.verdict.grade] += 1
        }
        if (before && !after) history = withPast(history, over(shown(before, memory), clock.now()))
        if (after?.phase === 'proven' || after?.phase === 'undone') totals[after.phase] += 1
        if (after?.phase === 'expired' && !isRiskless(memory)) totals.expired += 1
      },
      ack(ack) {
        totals.hooks += 1
        history = withAck(history, { at: clock.now(), by: name, ack }, sleepMs)
      },
      round() {
        totals.rounds += 1
        lastRoundAt = clock.now()
      }
    },
    history: () => history,
    answeredAt(uid) {
      if (answered.of !== history.acks)
        answered = { of: history.acks, at: new Map(history.acks.map(({ at, ack }) => [ack.pod.uid, at])) }
      return answered.at.get(uid)
    },
    heard: answer => void (history = withHeard(history, answer)),
    totals: () => ({ ...totals, graded: { ...graded }, savedMs: history.savedMs }),
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
