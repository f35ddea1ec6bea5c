import type { HolderView } from '../../report/snapshot/holder-view.ts'
import { count, formatMs } from './format.ts'
import type { Lane } from './lanes.ts'
import { formatAge, LATE_MS } from './why-behind.ts'
import type { Tone } from './words.ts'

export const HOLDER_FILTERS = ['differing', 'all', 'behind', 'on successors', 'ghosts', 'missing'] as const
export type HolderFilter = (typeof HOLDER_FILTERS)[number]

const differs = ({ ghosts, behind, onSuccessors }: HolderView) =>
  ghosts.length > 0 || behind !== null || onSuccessors !== null

const KEEPS: Record<HolderFilter, (holder: HolderView) => boolean> = {
  differing: differs,
  all: () => true,
  behind: ({ behind }) => behind !== null,
  'on successors': ({ onSuccessors }) => onSuccessors !== null,
  ghosts: ({ ghosts }) => ghosts.length > 0,
  missing: ({ missing }) => missing.length > 0
}

/**
 * The holders that match filter and search. Those that are behind come first, the oldest change on top; then others that differ; then those
 * with a measured lag. A search matches key, name, owner, Service and nodes, and looks through all holders.
 */
export function holderRows(
  holders: readonly HolderView[],
  filter: HolderFilter,
  query: string
): readonly HolderView[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const keeps = words.length > 0 && filter === 'differing' ? KEEPS.all : KEEPS[filter]
  const found = holders.filter(holder => {
    if (!keeps(holder)) return false
    if (words.length === 0) return true
    const { key, name, owner, service, nodes } = holder
    const text = [key, name, owner, service, ...nodes].join(' ').toLowerCase()
    return words.every(word => text.includes(word))
  })
  const behind = found.filter(one => one.behind !== null)
  behind.sort((a, b) => (a.behind?.since ?? 0) - (b.behind?.since ?? 0))
  const others = found.filter(one => one.behind === null)
  return [
    ...behind,
    ...others.filter(differs),
    ...others.filter(one => !differs(one) && one.lags.length > 0),
    ...others.filter(one => !differs(one) && one.lags.length === 0)
  ]
}

/** The time of its oldest difference; Infinity: none. */
export const differsSince = ({ ghosts, behind, onSuccessors }: HolderView): number =>
  Math.min(...[...ghosts, behind, onSuccessors].map(one => one?.since ?? Infinity))

/** `bad` once a difference is older than LATE_MS. Younger differences are part of every rollout. */
export const toneOf = (holder: HolderView, now: number): Tone =>
  now - differsSince(holder) > LATE_MS ? 'bad' : 'busy'

/** The differences of a holder from Kubernetes, with their age: `1 ghost: 10.4.1.7:8080 (3 min 05 s)`. */
export function differenceOf(
  { ghosts, missing, notReady, onSuccessors, behind }: HolderView,
  now: number
): string {
  const age = (since: number) => formatAge(Math.max(0, now - since))
  const list = (nodes: readonly { readonly node: string; readonly since: number }[]) =>
    nodes.map(({ node, since }) => `${node} (${age(since)})`).join(' ')
  return [
    ...(onSuccessors
      ? [
          `no node that serves (${age(onSuccessors.since)}), successors: ${onSuccessors.nodes.join(' ') || 'none'}`
        ]
      : []),
    ...(ghosts.length > 0 ? [`${count(ghosts.length, 'ghost')}: ${list(ghosts)}`] : []),
    ...(missing.length > 0 ? [`missing: ${list(missing)}`] : []),
    ...(notReady.length > 0 ? [`not Ready and still listed: ${list(notReady)}`] : []),
    ...(behind?.gateways ?? []).map(({ gateway, why, since }) => `${gateway}: ${why} (${age(since)})`)
  ].join(' · ')
}

/** A clock of each gateway that one holder has been followed by: the slowest, and all as a text. */
export interface Clock {
  readonly ms: number
  readonly each: string
}

export function clockOf(
  lags: readonly { readonly gateway: string; readonly ms: number }[]
): Clock | undefined {
  if (lags.length === 0) return undefined
  return {
    ms: Math.max(...lags.map(({ ms }) => ms)),
    each: lags.map(({ gateway, ms }) => `${gateway} ${formatMs(ms)}`).join(', ')
  }
}

/** By holder, how long its gateways took to seal (or confirm) the last pod that ended there. `over`: ended drains, newest first. */
export function lastOut(over: readonly Lane[]): ReadonlyMap<string, Clock> {
  const last = new Map<string, Clock>()
  for (const { drain, start } of over) {
    const clock = clockOf(
      drain.gateways.flatMap(({ name, sealedAt, at }) => {
        const to = sealedAt ?? at
        return to === undefined ? [] : [{ gateway: name, ms: Math.max(0, to - start) }]
      })
    )
    for (const { key } of drain.holders) if (clock && !last.has(key)) last.set(key, clock)
  }
  return last
}
