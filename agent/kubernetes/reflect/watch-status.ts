import { type Millis, doubled } from '../../rules/drain/facts.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { isExpired, isFromTheFuture } from '../transport/objects.ts'
import type { Revision } from './collection.ts'

/** `connecting` until the first sync; `stale`: the copy may be older than the cluster, but is still used. */
export type WatchState = 'connecting' | 'live' | 'stale'

export interface WatchStatus {
  readonly state: WatchState
  /** Everything has been seen once. It never becomes false again. */
  readonly synced: boolean
  /** When the server last sent data on the watch, even if only a bookmark. */
  readonly lastEventAt: Millis | undefined
  readonly objects: number
  /** Why it is not live, in words; empty if it is. */
  readonly problem: string
  readonly counters: WatchCounters
}

interface WatchCounters {
  readonly events: number
  readonly lists: number
  readonly failures: number
  /** How often a watch did not show a change that another source had shown. */
  readonly silences: number
}

export type PartName = 'pods' | 'endpointslices' | 'gateways' | 'services'

/** Whether hooks are answered only with this watch. Without Services they are answered too, except for pods that Services may hide. */
export const isNeeded = (name: PartName): boolean => name !== 'services'

/** The state of the watch of one kind of object, over all namespaces. */
export interface Part extends WatchStatus {
  readonly name: PartName
}

/** Whether these watches are complete: then an object that they do not show does not exist. */
export const areLive = (parts: readonly Part[], names: readonly PartName[]): boolean =>
  parts.every(({ name, state }) => !names.includes(name) || state === 'live')

const WORST_FIRST: readonly WatchState[] = ['connecting', 'stale', 'live']

/** A list in the configuration needs no watch, because it is always complete. */
export function staticPart(name: PartName, objects: number): Part {
  const counters = { events: 0, lists: 0, failures: 0, silences: 0 }
  return { name, state: 'live', synced: true, lastEventAt: undefined, objects, problem: '', counters }
}

/** One status for several watches: as good as the worst of them. */
export function combine(name: PartName, all: readonly WatchStatus[]): Part {
  const sum = (value: (status: WatchStatus) => number) => all.reduce((total, each) => total + value(each), 0)
  const lastEvents = all.map(each => each.lastEventAt)
  const known = lastEvents.filter(at => at !== undefined)
  return {
    name,
    state: WORST_FIRST.find(state => all.some(each => each.state === state)) ?? 'live',
    synced: all.every(each => each.synced),
    lastEventAt: known.length === all.length && known.length > 0 ? Math.min(...known) : undefined,
    objects: sum(each => each.objects),
    problem: all.find(each => each.problem !== '')?.problem ?? '',
    counters: {
      events: sum(each => each.counters.events),
      lists: sum(each => each.counters.lists),
      failures: sum(each => each.counters.failures),
      silences: sum(each => each.counters.silences)
    }
  }
}

interface LivenessOptions {
  readonly clock: Clock
  readonly log: Log
  readonly onChange: () => void
  /** Logged when the watch becomes live. */
  readonly facts: () => Readonly<Record<string, unknown>>
}

/** Whether a watch is live, and since when. The only owner of that state. */
export function createLiveness({ clock, log, onChange, facts }: LivenessOptions) {
  let state: WatchState = 'connecting'
  let problem = 'not connected yet'
  let isSynced = false
  let liveSince: Millis | undefined
  let notLiveSince = clock.now()

  const become = (now: WatchState, why: string) => {
    const changed = state !== now
    if (why !== problem && why !== '') log.warn({ problem: why, state: now }, 'watch is not live')
    if (changed && now === 'live')
      log.info({ ...facts(), tookMs: Math.round(clock.now() - notLiveSince) }, 'watch is live')
    if (state === 'live') notLiveSince = clock.now()
    state = now
    problem = why
    if (changed) onChange()
  }

  return {
    state: (): WatchState => state,
    /** Why it is not live, in words; empty if it is. */
    problem: (): string => problem,
    /** Whether the first list is complete. */
    isSynced: (): boolean => isSynced,
    /** Everything was listed. */
    synced: () => void (isSynced = true),
    /** A new watch is being tried. */
    begun: () => void (liveSince = undefined),
    live() {
      liveSince = clock.now()
      become('live', '')
    },
    lost: (why: string) => become(isSynced ? 'stale' : 'connecting', why),
    /** How long the present or last watch has lived, in ms; 0 if it was never live. */
    livedMs: (): number => (liveSince === undefined ? 0 : clock.now() - liveSince)
  }
}

/** The next step of a reflector. A list must show at least the revision `from`, if there is one. */
type Step = { readonly does: 'watch' } | { readonly does: 'list'; readonly from: Revision | undefined }

/** After this many consecutive failures without a single event, everything is listed again. */
const FRUITLESS = 3

/** The watch is live, and another source contradicts it. */
export class Doubted extends Error {
  override readonly name = 'Doubted'
}

/** Decides whether to list or to watch. The only owner of that state. */
export function createNextStep() {
  let next: Step = { does: 'list', from: undefined }
  let fruitless = 0
  return {
    step: (): Step => next,
    /** The list is complete. */
    listed: () => void (next = { does: 'watch' }),
    /** The watch has sent an event. */
    heard: () => void (fruitless = 0),
    /** @param at the revision that the watch has reached */
    failed(error: unknown, at: Revision | undefined) {
      const isOutdated = isExpired(error) || isFromTheFuture(error)
      fruitless += 1
      if (error instanceof Doubted || isFromTheFuture(error)) next = { does: 'list', from: undefined }
      else if (next.does === 'list') next = isOutdated ? { does: 'list', from: undefined } : next
      else if (isOutdated || fruitless >= FRUITLESS) next = { does: 'list', from: at }
    }
  }
}

const BACKOFF_MS = { first: 50, longest: 5_000 }
/** After a connection that has lived this long, the back-off starts over, in ms. */
const HEALTHY_MS = 10_000

/**
 * Returns the wait after a failure of a connection that was healthy for `livedMs`, in ms. Doubles, with jitter over the upper half, so
 * that agents of many clusters behind one balancer do not reconnect together. Starts over once a connection has lived long enough, because a stream that syncs and breaks at once is not healthy.
 */
export function createBackoff(random = Math.random): (livedMs: number) => number {
  let failures = 0
  return livedMs => {
    if (livedMs >= HEALTHY_MS) failures = 0
    const ceiling = doubled(BACKOFF_MS, failures)
    failures += 1
    return ceiling * (0.5 + random() / 2)
  }
}
