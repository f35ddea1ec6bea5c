import type { Clock } from '../clock.ts'
import type { Drain } from '../drain/drain.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Leader } from '../lead/leader.ts'
import type { Observer } from '../loop.ts'

/** The pod's condition that says how its drain went: `True` when it was proved, `False` when it was not or is undone. */
const CONDITION = 'apisix-drain.io/drained'

interface ConditionsOptions {
  /** Merges into an object at the API server. Any status is an answer; rejects where there is none in time. */
  readonly patch: (path: string, body: unknown, signal: AbortSignal) => Promise<{ readonly status: number }>
  readonly leader: Pick<Leader, 'leads'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<Metrics, 'conditions'>
}

interface Conditions {
  readonly observer: Observer
  /** Drops what is left. */
  stop(): Promise<void>
}

/**
 * Answers to a patch with a uid where the pod is gone, or another one has its name by now: kube-apiserver 1.36 calls a uid that
 * would change invalid (422).
 */
export const ANOTHERS: ReadonlySet<number> = new Set([404, 409, 422])

/** More are not written: they wait in line, so that 500 pods at once do not crowd out the agent's other calls. */
const LONGEST_QUEUE = 1000
/** From one to the next, in ms. */
const PAUSE_MS = 50
/** The longest message that is worth a pod's status, in characters. */
const LONGEST_MESSAGE = 1000

/** Writes the condition, one pod after the other. What cannot be written is counted and left out: nothing waits for it. */
export function createConditions({ patch, leader, clock, log, metrics }: ConditionsOptions): Conditions {
  const stopped = new AbortController()
  const queue: Drain[] = []
  let running: Promise<void> | undefined
  let failing = false

  const write = async (drain: Drain): Promise<void> => {
    const { namespace, name } = drain.pod
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/status`
    try {
      const { status } = await patch(path, conditionOf(drain, clock.now()), stopped.signal)
      if (status !== 200 && !ANOTHERS.has(status)) throw new Error(`status ${status}`)
      failing = false
      metrics.conditions.inc({ result: 'ok' })
    } catch (err) {
      if (stopped.signal.aborted) return
      metrics.conditions.inc({ result: 'error' })
      if (!failing) log.warn({ err, namespace }, 'a condition could not be written')
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

/** The body of a strategic merge: conditions are merged by type, and the uid keeps it off a namesake. */
export function conditionOf(drain: Drain, at: number) {
  const proven = drain.phase === 'proven'
  const message = drain.phase === 'undone' ? drain.why : drain.verdict.why
  return {
    metadata: { uid: drain.uid },
    status: {
      conditions: [
        {
          type: CONDITION,
          status: proven ? 'True' : 'False',
          reason: proven ? 'Drained' : drain.phase === 'undone' ? 'DrainUndone' : 'NotProved',
          message: message.slice(0, LONGEST_MESSAGE),
          lastTransitionTime: new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')
        }
      ]
    }
  }
}
