import type { ArrivalView, HolderView } from '../../report/snapshot/snapshot.ts'
import { count, formatAge, formatMs } from './format.ts'
import type { Lane } from './lanes.ts'
import type { Tone } from './words.ts'

/** A difference that is older than this is late, in ms. Owners and gateways need a few seconds in every rollout. */
export const LATE_MS = 30_000

/** `shop/web (upstreams/b41c9837)`: the Service that it follows, or its own name, and the id of the object. */
export const holderName = ({ service, name, key }: Pick<HolderView, 'service' | 'name' | 'key'>): string =>
  (service ?? name) ? `${service ?? name} (${key})` : key

/** Why a holder is behind Kubernetes: `its owner (ingress-controller-2) has not written 2 nodes`; empty if the holder is not behind. */
export function whyBehind({ behind, missing, notReady, owner }: HolderView): string {
  if (!behind) return ''
  const late = missing.length + notReady.length
  const nodes = late > 0 ? count(late, 'node') : 'what changed since'
  const [first, ...others] = behind.gateways
  const writer = owner === 'unknown' ? 'its owner' : `its owner (${owner})`
  const gateway =
    first &&
    `${first.gateway}: ${first.why}${others.length > 0 ? `, and ${count(others.length, 'other')}` : ''}`
  return [
    ...(behind.cause === 'owner' ? [`${writer} has not written ${nodes}`] : []),
    ...(behind.cause === 'sync' ? [`the agent's sync has not written ${nodes}`] : []),
    ...(gateway ? [gateway] : [])
  ].join('; ')
}

/** How long a holder has been behind, in ms; `null`: the holder is not behind. */
export const behindFor = ({ behind }: HolderView, now: number): number | null =>
  behind && Math.max(0, now - behind.since)

export const HOLDER_FILTERS = ['differing', 'all'] as const

export const differs = ({ ghosts, behind, onSuccessors }: HolderView): boolean =>
  ghosts.length > 0 || behind !== null || onSuccessors !== null

/** The holders that match filter and search: those that are behind first, the oldest change on top. A search looks through all holders. */
export function holderRows(
  holders: readonly HolderView[],
  filter: (typeof HOLDER_FILTERS)[number],
  query: string
): readonly HolderView[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const found = holders.filter(holder => {
    if (words.length === 0) return filter === 'all' || differs(holder)
    const { key, name, owner, service, nodes } = holder
    const text = [key, name, owner, service, ...nodes].join(' ').toLowerCase()
    return words.every(word => text.includes(word))
  })
  const rank = (one: HolderView) => (one.behind ? 0 : differs(one) ? 1 : 2)
  return found.sort((a, b) => rank(a) - rank(b) || (a.behind?.since ?? 0) - (b.behind?.since ?? 0))
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
  const age = (since: number) => formatAge(now - since)
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

type Times = readonly { readonly name: string; readonly at: number | null | undefined }[]

function lastOf(pods: readonly (readonly [holders: readonly string[], start: number, Times])[]) {
  const last = new Map<string, Clock>()
  for (const [holders, start, times] of pods) {
    const all = times.flatMap(({ name, at }) => (at ? [{ name, ms: Math.max(0, at - start) }] : []))
    const each = all.map(({ name, ms }) => `${name} ${formatMs(ms)}`).join(', ')
    const clock = { ms: Math.max(...all.map(({ ms }) => ms)), each }
    for (const key of holders) if (all.length > 0 && !last.has(key)) last.set(key, clock)
  }
  return last as ReadonlyMap<string, Clock>
}

/** By holder, how long its gateways took to seal (or confirm) the last pod that ended there. `over`: ended drains, newest first. */
export const lastOut = (over: readonly Lane[]) =>
  lastOf(
    over.map(({ drain, start }) => [
      drain.holders.map(({ key }) => key),
      start,
      drain.gateways.map(({ name, sealedAt, at }) => ({ name, at: sealedAt ?? at }))
    ])
  )

/** By holder, how long its gateways took to route to the last pod that became Ready there. `arrivals`: newest first. */
export const lastIn = (arrivals: readonly ArrivalView[]) =>
  lastOf(
    arrivals.map(({ holders, readyAt, routedAt, gateways }) => [holders, readyAt, routedAt ? gateways : []])
  )
