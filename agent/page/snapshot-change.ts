import type { LeadsTo } from '../plan/leads-to.ts'
import type { ArrivalView, DrainView, GatewayView, HolderView, Snapshot, WatchView } from './snapshot.ts'
import { same } from '../base/same.ts'

/** How a list of keyed items differs: `put` has new and changed items, `gone` the keys of removed ones. */
interface KeyedChange<T> {
  readonly put?: readonly T[]
  readonly gone?: readonly string[]
  /** All keys in order; absent if it is the previous order with new keys at the end. */
  readonly order?: readonly string[]
}

/** How a list that only grows at its head differs: the items added there, and how many of the previous ones are kept. */
interface HeadChange<T> {
  readonly add: readonly T[]
  readonly keep: number
}

type Whole = Pick<Snapshot, 'agent' | 'inventory' | 'totals'>
type Heads = Pick<Snapshot, 'acks' | 'past' | 'unproved' | 'lags'>

/** The differences of the next snapshot. A field that is absent did not change. */
interface Change extends Partial<Whole> {
  readonly at: Snapshot['at']
  readonly watches?: KeyedChange<WatchView>
  readonly gateways?: KeyedChange<GatewayView>
  readonly holders?: KeyedChange<HolderView>
  readonly hidden?: KeyedChange<LeadsTo>
  readonly drains?: KeyedChange<DrainView>
  readonly arrivals?: KeyedChange<ArrivalView>
  readonly acks?: HeadChange<Heads['acks'][number]>
  readonly past?: HeadChange<Heads['past'][number]>
  readonly unproved?: HeadChange<Heads['unproved'][number]>
  readonly lags?: HeadChange<Heads['lags'][number]>
}

/** What `/api/stream` sends: one snapshot, then changes. A gap in `seq` means that the reader must start again. */
export type Message =
  | { readonly kind: 'snapshot'; readonly seq: number; readonly snapshot: Snapshot }
  | { readonly kind: 'change'; readonly seq: number; readonly change: Change }

const keyOf = {
  watches: (watch: WatchView) => watch.kind,
  gateways: (gateway: GatewayView) => gateway.id,
  holders: (holder: HolderView) => holder.key,
  hidden: ({ holder, why }: LeadsTo) => `${holder} ${why}`,
  drains: (drain: DrainView) => drain.uid,
  arrivals: (arrival: ArrivalView) => `${arrival.uid} ${arrival.readyAt}`
}

/** `apply(before, diff(before, after))` equals `after`. Keys are unique within their list. */
export function diff(before: Snapshot, after: Snapshot): Change {
  return {
    at: after.at,
    ...(!same(before.agent, after.agent) && { agent: after.agent }),
    ...(!same(before.inventory, after.inventory) && { inventory: after.inventory }),
    ...(!same(before.totals, after.totals) && { totals: after.totals }),
    ...field('watches', keyedDiff(before.watches, after.watches, keyOf.watches)),
    ...field('gateways', keyedDiff(before.gateways, after.gateways, keyOf.gateways)),
    ...field('holders', keyedDiff(before.holders, after.holders, keyOf.holders)),
    ...field('hidden', keyedDiff(before.hidden, after.hidden, keyOf.hidden)),
    ...field('drains', keyedDiff(before.drains, after.drains, keyOf.drains)),
    ...field('arrivals', keyedDiff(before.arrivals, after.arrivals, keyOf.arrivals)),
    ...field('acks', headDiff(before.acks, after.acks)),
    ...field('past', headDiff(before.past, after.past)),
    ...field('unproved', headDiff(before.unproved, after.unproved)),
    ...field('lags', headDiff(before.lags, after.lags))
  }
}

/** The next snapshot. Items that did not change are the same objects as before, so a page knows what to redraw. */
export function apply(before: Snapshot, change: Change): Snapshot {
  return {
    version: before.version,
    at: change.at,
    agent: change.agent ?? before.agent,
    inventory: change.inventory ?? before.inventory,
    totals: change.totals ?? before.totals,
    watches: keyedApply(before.watches, change.watches, keyOf.watches),
    gateways: keyedApply(before.gateways, change.gateways, keyOf.gateways),
    holders: keyedApply(before.holders, change.holders, keyOf.holders),
    hidden: keyedApply(before.hidden, change.hidden, keyOf.hidden),
    drains: keyedApply(before.drains, change.drains, keyOf.drains),
    arrivals: keyedApply(before.arrivals, change.arrivals, keyOf.arrivals),
    acks: headApply(before.acks, change.acks),
    past: headApply(before.past, change.past),
    unproved: headApply(before.unproved, change.unproved),
    lags: headApply(before.lags, change.lags)
  }
}

const field = <K extends string, V>(name: K, value: V | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { readonly [N in K]?: V }

function keyedDiff<T>(
  before: readonly T[],
  after: readonly T[],
  key: (item: T) => string
): KeyedChange<T> | undefined {
  if (before === after) return undefined
  const known = new Map(before.map(item => [key(item), item]))
  const now = new Set(after.map(key))
  const put = after.filter(item => !same(known.get(key(item)), item))
  const gone = [...known.keys()].filter(name => !now.has(name))
  const expected = [
    ...[...known.keys()].filter(name => now.has(name)),
    ...[...now].filter(name => !known.has(name))
  ]
  const moved = after.some((item, i) => key(item) !== expected[i])
  if (put.length === 0 && gone.length === 0 && !moved) return undefined
  return {
    ...(put.length > 0 && { put }),
    ...(gone.length > 0 && { gone }),
    ...(moved && { order: [...now] })
  }
}

function keyedApply<T>(
  before: readonly T[],
  change: KeyedChange<T> | undefined,
  key: (item: T) => string
): readonly T[] {
  if (!change) return before
  const items = new Map(before.map(item => [key(item), item]))
  for (const name of change.gone ?? []) items.delete(name)
  for (const item of change.put ?? []) items.set(key(item), item)
  return change.order ? change.order.flatMap(name => items.get(name) ?? []) : [...items.values()]
}

function headDiff<T>(before: readonly T[], after: readonly T[]): HeadChange<T> | undefined {
  if (before === after) return undefined
  const [newest] = before
  // Items are only ever added at the head.
  const found = before.length === 0 ? -1 : after.findIndex(item => same(item, newest))
  const add = found === -1 ? after : after.slice(0, found)
  const keep = after.length - add.length
  if (keep > before.length || !tailIs(before, after, add.length)) return { add: after, keep: 0 }
  return add.length === 0 && keep === before.length ? undefined : { add, keep }
}

const tailIs = <T>(before: readonly T[], after: readonly T[], from: number): boolean =>
  after.slice(from).every((item, i) => same(item, before[i]))

const headApply = <T>(before: readonly T[], change: HeadChange<T> | undefined): readonly T[] =>
  change ? [...change.add, ...before.slice(0, change.keep)] : before
