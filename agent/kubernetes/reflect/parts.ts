import type { Millis } from '../../rules/drain/facts.ts'

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
