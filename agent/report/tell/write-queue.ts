import type { Clock } from '../../base/clock.ts'

interface WriteQueueOptions<T> {
  readonly clock: Clock
  readonly write: (item: T, signal: AbortSignal) => Promise<unknown>
  readonly wrote: () => void
  /** `isFirst`: the previous write succeeded. */
  readonly failed: (item: T, err: unknown, isFirst: boolean) => void
}

interface WriteQueue<T> {
  /** Never blocks. False if the queue is full. A stopped queue drops the item. */
  push(item: T): boolean
  /** Aborts the current write, and drops the rest. */
  stop(): Promise<void>
}

/** The longest queue. */
const LONGEST = 1000
/** The interval between two writes, in ms. */
const PAUSE_MS = 50

/**
 * Writes items one after another, so that 500 pods at once do not delay the agent's other calls. A failed write is not retried, because no
 * component waits for it.
 */
export function createWriteQueue<T>({ clock, write, wrote, failed }: WriteQueueOptions<T>): WriteQueue<T> {
  const stopped = new AbortController()
  const queue: T[] = []
  let running: Promise<void> | undefined
  let failing = false

  const next = async (item: T): Promise<void> => {
    try {
      await write(item, stopped.signal)
      failing = false
      wrote()
    } catch (err) {
      if (stopped.signal.aborted) return
      failed(item, err, !failing)
      failing = true
    }
  }
  const run = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      await next(item)
      if (stopped.signal.aborted) return
      await clock.sleep(PAUSE_MS, stopped.signal).catch(() => {})
    }
    running = undefined
  }

  return {
    push(item) {
      if (stopped.signal.aborted) return true
      if (queue.length >= LONGEST) return false
      queue.push(item)
      running ??= run()
      return true
    },
    async stop() {
      stopped.abort(new Error('the agent is stopping'))
      await running
    }
  }
}
