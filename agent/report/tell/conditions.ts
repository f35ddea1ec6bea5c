import type { Clock } from '../../base/clock.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { Log } from '../../base/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Leader } from '../../kubernetes/lead/leader.ts'
import type { Observer } from '../../round/observer.ts'
import { writeCondition, type Patch, type PodCondition } from './pod-condition.ts'
import { createWriteQueue } from './write-queue.ts'

/** The pod condition that reports the result of a drain: `True` if it was proved, `False` if it was not, or was undone. */
const CONDITION = 'apisix-drain.io/drained'

interface ConditionsOptions {
  readonly patch: Patch
  readonly leader: Pick<Leader, 'leads'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<Metrics, 'conditions'>
}

interface Conditions {
  readonly observer: Observer
  /** Drops the rest of the queue. */
  stop(): Promise<void>
}

/** Writes the conditions, one pod after another. A failed write is counted and not retried. */
export function createConditions({ patch, leader, clock, log, metrics }: ConditionsOptions): Conditions {
  const queue = createWriteQueue<Drain>({
    clock,
    write: (drain, signal) => writeCondition(patch, drain.pod, conditionOf(drain), clock.now(), signal),
    wrote: () => metrics.conditions.inc({ result: 'ok' }),
    failed({ pod }, err, isFirst) {
      metrics.conditions.inc({ result: 'error' })
      if (isFirst) log.warn({ err, namespace: pod.namespace }, 'a condition could not be written')
    }
  })

  return {
    observer: {
      drain(before, after) {
        if (!after || after.phase === 'draining' || after.phase === 'gone') return
        if ((before?.phase ?? 'draining') !== 'draining') return
        if (leader.leads()) queue.push(after)
      }
    },
    stop: () => queue.stop()
  }
}

/** The condition of a pod that states how far its drain is. */
export function conditionOf(drain: Drain): PodCondition {
  const proven = drain.phase === 'proven'
  return {
    type: CONDITION,
    status: proven ? 'True' : 'False',
    reason: proven ? 'Drained' : drain.phase === 'undone' ? 'DrainUndone' : 'NotProved',
    message: drain.phase === 'undone' ? drain.why : drain.verdict.why
  }
}
