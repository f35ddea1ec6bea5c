import type { Logger } from 'pino'
import { createListeners, type Clock } from '../../base/clock.ts'
import { type Millis, doubled } from '../../rules/drain/facts.ts'
import { isDenied } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'
import type { AdminObject } from '../apisix/admin-api.ts'
import { createHolderIndex } from './holder-index.ts'
import { listAll, tellProblems, type Lists, type ListSource } from './lists.ts'

/** Every existing holder, as last read. Every method except `refresh` and `stop` returns at once. */
export type Inventory = ReturnType<typeof createInventory>

interface InventoryOptions {
  readonly lists: Pick<ListSource, 'open'>
  readonly clock: Clock
  readonly log: Logger
  /** From the end of one full listing to the next, in ms; default `EVERY_MS`. */
  readonly everyMs?: number | undefined
}

const EVERY_MS = 30_000
/** The wait before the retry of a listing with problems, in ms; doubled each time, up to the usual interval. */
const FIRST_RETRY_MS = 1000
/** The log reports failed listings at most once in this time, in ms. Each drain asks for a listing, and all would log the same. */
const TELL_EVERY_MS = 60_000

/** APISIX logs a warning for each listing of stream routes while its stream mode is off. So they are asked for again after this time, in ms. */
const OFF_MS = 60_000

/** Every collection whose objects list nodes. */
export const RESOURCES: readonly Resource[] = [
  'upstreams',
  'services',
  'routes',
  'stream_routes',
  'plugin_configs',
  'consumers',
  'consumer_groups',
  'global_rules'
]

export function createInventory({ lists, clock, log, everyMs = EVERY_MS }: InventoryOptions) {
  const index = createHolderIndex()
  const listeners = createListeners()
  const ended = new AbortController()
  const readAt = new Map<Resource, Millis>()
  const problems = new Map<Resource, Error>()
  let offUntil = -Infinity
  let running: Promise<void> | undefined
  let queued: PromiseWithResolvers<void> | undefined
  let failures = 0
  let warnedAt = -Infinity
  let started = false
  let cancel = () => {}

  const listOne = async (resource: Resource, source: Promise<Lists>, beganAt: Millis): Promise<void> => {
    const isL4 = resource === 'stream_routes'
    try {
      const isOff = isL4 && beganAt < offUntil
      const listed = isOff ? undefined : await listAll(await source, resource, ended.signal)
      if (isL4 && !isOff && !listed) offUntil = beganAt + OFF_MS
      index.replace(resource, listed ?? [], beganAt)
      readAt.set(resource, beganAt)
      problems.delete(resource)
    } catch (error) {
      if (ended.signal.aborted) return
      problems.set(resource, error as Error)
    }
  }

  const warn = (): void => {
    // `reportRefusals` logs a refused key once for all parts.
    const failed = new Map([...problems].filter(([, error]) => !isDenied(error)))
    if (failed.size === 0 || clock.now() < warnedAt + TELL_EVERY_MS) return
    warnedAt = clock.now()
    log.warn({ why: tellProblems(failed) }, 'listing failed, the last one stays in use')
  }

  const listEverything = async (): Promise<void> => {
    cancel()
    const beganAt = clock.now()
    const source = lists.open(ended.signal)
    // Two at a time, so that the Admin API has time for writes.
    const waiting = [...RESOURCES]
    const lane = async () => {
      for (let one = waiting.shift(); one !== undefined && !ended.signal.aborted; one = waiting.shift())
        await listOne(one, source, beganAt)
    }
    await Promise.all([lane(), lane()])
    running = undefined
    if (ended.signal.aborted) return queued?.resolve()
    warn()
    failures = problems.size > 0 ? failures + 1 : 0
    const pause = failures > 0 ? doubled({ first: FIRST_RETRY_MS, longest: everyMs }, failures - 1) : everyMs
    if (started) cancel = clock.alarm(clock.now() + pause, () => void refresh())
    // The queued listing begins before the listeners are notified. So a listener that asks for a refresh does not delay earlier callers.
    if (queued) {
      const { resolve } = queued
      queued = undefined
      void refresh().then(resolve)
    }
    listeners.notify()
  }

  const refresh = (): Promise<void> => {
    if (ended.signal.aborted) return Promise.resolve()
    if (!running) return (running = listEverything())
    // The running listing began before this call, and may have missed the caller's change.
    queued ??= Promise.withResolvers()
    return queued.promise
  }

  const { replace: _replaced, ...answers } = index
  return {
    ...answers,
    /** Lists once now, and then `everyMs` after the end of each listing. */
    start: () => {
      started = true
      void refresh()
    },
    /**
     * Resolves when a listing that BEGAN after this call has ended, complete or not (see `problem`). Calls during a listing share the
     * next listing. Never rejects.
     */
    refresh,
    /** When the oldest listing behind this inventory BEGAN (there is one for each collection); undefined before the first complete one. */
    readAt: (): Millis | undefined =>
      readAt.size === RESOURCES.length ? Math.min(...readAt.values()) : undefined,
    /** Why a part of the inventory is too old: its last listing failed. Empty if no last listing failed. */
    problem: () => tellProblems(problems),
    /** Stores one object that was just read (the writer's read-back). */
    learn: (object: AdminObject) => {
      if (index.learn(object, clock.now())) listeners.notify()
    },
    /** Records that the object is gone (404). */
    forget: (resource: Resource, id: string) => {
      if (index.forget(resource, id, clock.now())) listeners.notify()
    },
    /** Called after every listing, and after a change by `learn` or `forget`. Returns a function that unsubscribes. */
    onChange: (listener: () => void): (() => void) => listeners.add(listener),
    stop: async () => {
      cancel()
      ended.abort()
      await running
    }
  }
}
