import { createConfigView, type ConfigView } from './config-view.ts'
import type { Store, StoreEvent } from './store.ts'

/** The time from a write until a worker applies it, in ms; called anew for each write. */
export type ApplyDelay = () => number

/** As measured in a healthy gateway (APISIX 3.18): a few ms. Some workers apply a write before the writer has its answer. */
export const measuredDelay: ApplyDelay = () => Math.random() * 6

/** In standalone mode every worker checks the document ten times a second (APISIX 3.18). */
export const polledDelay: ApplyDelay = () => Math.random() * 100

interface WorkerOptions {
  readonly id: number
  /** The id of the process that a real worker would be. */
  readonly pid: number
  readonly store: Store
  readonly applyDelay?: ApplyDelay
  readonly onFreeze?: (frozen: boolean) => void
}

/** One nginx worker with its own configuration and connections. It can freeze or die alone. */
export interface Worker {
  readonly id: number
  readonly pid: number
  readonly config: ConfigView
  readonly frozen: boolean
  readonly stale: boolean
  /** The number of tasks that wait for it to thaw. */
  readonly queued: number
  /** Runs `task` now, or once thawed, with the worker's configuration of that moment. Never runs it after a kill. */
  run(task: () => void): void
  /** Resolves when the worker runs. */
  turn(): Promise<void>
  /** As SIGSTOP or a blocked event loop: everything in it stops, even the application of configuration. */
  freeze(): void
  /** Runs queued requests first, then applies the missed writes. In a measurement, 11 of 24 requests went to the old node. */
  thaw(): void
  /** Its watch breaks without an error: the worker misses writes, while everything else works. */
  loseWatch(): void
  /** Opens a new watch and reads everything again. */
  restoreWatch(): void
  /** Stops it. It cannot start again. */
  kill(): void
}

/** A write that is not applied yet; `due` by the monotonic clock, in ms. */
interface Pending {
  readonly due: number
  readonly event: StoreEvent
}

export function createWorker(options: WorkerOptions): Worker {
  const { store } = options
  const applyDelay = options.applyDelay ?? measuredDelay
  const config = createConfigView(store)
  const pending: Pending[] = []
  let queued: (() => void)[] = []
  let missed: StoreEvent[] = []
  let state: 'running' | 'frozen' | 'dead' = 'running'
  let stale = false
  let timer: NodeJS.Timeout | undefined

  const apply = (event: StoreEvent): void => {
    if (stale) return
    if (state === 'frozen') missed.push(event)
    else config.apply(event)
  }
  const deliver = (): void => {
    clearTimeout(timer)
    const now = performance.now()
    while (pending[0] && pending[0].due <= now) {
      const [{ event }] = pending.splice(0, 1) as [Pending]
      apply(event)
    }
    const [next] = pending
    if (!next) return
    timer = setTimeout(deliver, Math.ceil(next.due - now))
    timer.unref()
  }
  const unwatch = store.watch(event => {
    if (stale) return
    // One watch delivers in order: no write overtakes an earlier one.
    const due = Math.max(performance.now() + applyDelay(), pending.at(-1)?.due ?? 0)
    pending.push({ due, event })
    if (pending.length === 1) deliver()
  })

  const worker: Worker = {
    id: options.id,
    pid: options.pid,
    config,
    get frozen() {
      return state === 'frozen'
    },
    get stale() {
      return stale
    },
    get queued() {
      return queued.length
    },
    run: task => {
      if (state === 'running') task()
      else if (state === 'frozen') queued.push(task)
    },
    turn: () => new Promise(resolve => worker.run(resolve)),
    freeze: () => {
      if (state !== 'running') return
      state = 'frozen'
      options.onFreeze?.(true)
    },
    thaw: () => {
      if (state !== 'frozen') return
      state = 'running'
      const [tasks, events] = [queued, missed]
      queued = []
      missed = []
      for (const task of tasks) task()
      for (const event of events) apply(event)
      options.onFreeze?.(false)
    },
    loseWatch: () => {
      stale = true
    },
    restoreWatch: () => {
      stale = false
      config.reload(store)
    },
    kill: () => {
      state = 'dead'
      queued = []
      missed = []
      unwatch()
      clearTimeout(timer)
      pending.length = 0
    }
  }
  return worker
}
