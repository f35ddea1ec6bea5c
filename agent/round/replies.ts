import type { Clock } from '../base/clock.ts'
import type { Ack, Drain, Hook, DrainSettings } from '../rules/drain/drain.ts'
import { answer, answerProven, type Answer } from '../rules/drain/answer.ts'
import { mayStay } from '../rules/drain/eligible.ts'
import type { Millis, PodFact } from '../rules/drain/facts.ts'
import type { Statuses, Observer } from './gather/drain-status.ts'
import type { Look } from './gather/observe.ts'
import type { Sources, DrainStore } from './gather/sources.ts'
import { createFirsts } from './hold/hooks.ts'

interface RepliesOptions {
  readonly sources: Pick<Sources, 'cluster' | 'barrier'>
  readonly drains: Pick<DrainStore, 'current'>
  readonly statuses: Pick<Statuses, 'of'>
  readonly settings: () => DrainSettings
  readonly notify: (of: (observer: Observer) => void) => void
  readonly clock: Clock
}

/** Answers hooks by the drains of the last round, and notes each answer. */
export function createReplies(options: RepliesOptions) {
  const { sources, drains, statuses, settings, notify, clock } = options
  const isFirst = createFirsts()
  const note = (hook: Hook, ack: Ack, pod: PodFact, drain: Drain | undefined, now: Millis): void => {
    const status = statuses.of(hook.uid)
    status.ackAt ??= now
    if (isFirst(hook, ack, pod)) notify(observer => observer.ack?.(ack, drain, status, hook))
  }
  return {
    /** The answer, or the time of the next check. */
    now(hook: Hook, look: Look, now: Millis): Answer {
      const drain = drains.current().get(hook.uid)
      const reply = answer(hook, drain, look.seen, now, settings(), drain && unsealedSince(drain, sources))
      if (reply.kind === 'ack') note(hook, reply.ack, look.seen.pod, drain, now)
      return reply
    },
    /** The answer of a drain that is proven already. `undefined`: the hook waits for a round. */
    atOnce(hook: Hook): Ack | undefined {
      const drain = drains.current().get(hook.uid)
      const now = clock.now()
      // A hook of a container that stops has to be noted, because its seal stands until that container is back.
      const ack = drain && !mayStay(drain) && answerProven(hook, drain, now, unsealedSince(drain, sources))
      if (!ack) return undefined
      statuses.of(hook.uid).hookAt ??= hook.receivedAt
      note(hook, ack, drain.pod, drain, now)
      return ack
    }
  }
}

/**
 * The name of a gateway that has not sealed since the proof; `undefined`: none. A hook may come long after the proof. A gateway that has
 * restarted or joined in between may send requests to the pod until it has the entry, so its seal is needed too.
 */
function unsealedSince(drain: Drain, { cluster, barrier }: RepliesOptions['sources']): string | undefined {
  if (drain.phase !== 'proven' || drain.verdict.kind !== 'proven' || drain.verdict.grade !== 'barrier')
    return undefined
  const isSealed = (id: string): boolean => {
    const reading = barrier?.reading(drain.uid, id)
    // The last reading of a silent gateway counts, because it may be shutting down. If it has restarted, its state shows the new instance
    // before its reading does.
    const instance = barrier?.state(id)?.status?.instance
    const isOther = instance !== undefined && instance !== reading?.instance
    return !isOther && reading?.entry === 'sealed' && reading.inflight.requests === 0
  }
  return cluster.gateways().find(({ id, ready, terminating }) => (ready || terminating) && !isSealed(id))
    ?.name
}
