import type { Clock } from '../base/clock.ts'
import type { Drain } from '../drain/drain.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Leader } from '../lead/leader.ts'
import type { Observer } from '../round/observer.ts'
import { writeCondition, type Patch, type PodCondition } from './pod-condition.ts'

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

/** The longest queue of conditions; more are dropped. A queue, so that 500 pods at once do not delay the agent's other calls. */
const LONGEST_QUEUE = 1000
/** The interval between two conditions, in ms. */
const PAUSE_MS = 50
/** Writes the conditions, one pod after another. A failed write is counted and not retried, because nothing waits for it. */
export function createConditions({ patch, leader, clock, log, metrics }: ConditionsOptions): Conditions {
  const stopped = new AbortController()
  const queue: Drain[] = []
  let running: Promise<void> | undefined
  let failing = false

  const write = async (drain: Drain): Promise<void> => {
    try {
      await writeCondition(patch, drain.pod, conditionOf(drain), clock.now(), stopped.signal)
      failing = false
      metrics.conditions.inc({ result: 'ok' })
    } catch (err) {
      if (stopped.signal.aborted) return
      metrics.conditions.inc({ result: 'error' })
      if (!failing) log.warn({ err, namespace: drain.pod.namespace }, 'a condition could not be written')
      failing = true
    }
  }
  const run = async (): Promise<void> => {
    for (let drain = queue.shift(); drain; drain = queue.shift()) {
      await write(drain)
      if (stopped.signal.aborted) return
      await clock.sleep(PAUSE_MS, stopped.signal).catch(() => {})
    }
    running = undefined
  }

  return {
    observer: {
      drain(before, after) {
        if (!after || after.phase === 'draining' || after.phase === 'gone') return
        if ((before?.phase ?? 'draining') !== 'draining') return
        if (!leader.leads() || stopped.signal.aborted || queue.length >= LONGEST_QUEUE) return
        queue.push(after)
        running ??= run()
      }
    },
    async stop() {
      stopped.abort(new Error('the agent is stopping'))
      await running
    }
  }
}

export function conditionOf(drain: Drain): PodCondition {
  const proven = drain.phase === 'proven'
  return {
    type: CONDITION,
    status: proven ? 'True' : 'False',
    reason: proven ? 'Drained' : drain.phase === 'undone' ? 'DrainUndone' : 'NotProved',
    message: drain.phase === 'undone' ? drain.why : drain.verdict.why
  }
}
