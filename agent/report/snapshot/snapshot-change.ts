import { drainName } from './drain-view.ts'
import type { Snapshot } from './snapshot.ts'
import { same } from '../../base/same.ts'

/** How a list of keyed items differs: `put` has new and changed items, `gone` the keys of removed ones. */
interface KeyedChange<T> {
  readonly put?: readonly T[]
  readonly gone?: readonly string[]
  /** All keys in order; absent if it is the previous order with new items at the end (`NEWEST_FIRST`: at the head). */
  readonly order?: readonly string[]
}

type Whole = Pick<Snapshot, 'agent' | 'inventory' | 'totals'>
type Lists = Omit<Snapshot, 'version' | 'at' | keyof Whole>

/** The differences of the next snapshot. A field that is absent did not change. */
type Change = Pick<Snapshot, 'at'> &
  Partial<Whole> & { readonly [K in keyof Lists]?: KeyedChange<Lists[K][number]> }

/** A message of `/api/stream`: first a snapshot, then changes. A gap in `seq` means that the reader must start again. */
export type Message =
  | { readonly kind: 'snapshot'; readonly seq: number; readonly snapshot: Snapshot }
  | { readonly kind: 'change'; readonly seq: number; readonly change: Change }

/** The lists of a snapshot, and the key of an item within its list. */
const KEYS: { readonly [K in keyof Lists]: (item: Lists[K][number]) => string } = {
  watches: watch => watch.kind,
  gateways: gateway => gateway.id,
  holders: holder => holder.key,
  hidden: ({ holder, why }) => `${holder} ${why}`,
  drains: drain => drain.uid,
  arrivals: arrival => `${arrival.uid} ${arrival.readyAt}`,
  past: drainName,
  unproved: drainName,
  acks: ({ at, ack }) => `${ack.pod.uid} ${at} ${ack.elapsedMs}`,
  lags: lag => lag.uid
}
const LISTS = Object.keys(KEYS) as (keyof Lists)[]
const NEWEST_FIRST: ReadonlySet<keyof Lists> = new Set(['past', 'unproved', 'acks', 'lags'])

/** `apply(before, diff(before, after))` equals `after`. Keys are unique within their list. */
export function diff(before: Snapshot, after: Snapshot): Change {
  return {
    at: after.at,
    ...(!same(before.agent, after.agent) && { agent: after.agent }),
    ...(!same(before.inventory, after.inventory) && { inventory: after.inventory }),
    ...(!same(before.totals, after.totals) && { totals: after.totals }),
    ...Object.fromEntries(LISTS.flatMap(name => listDiff(name, before, after)))
  }
}

/** The next snapshot. Items that did not change are the same objects as before, so a page redraws only the others. */
export function apply(before: Snapshot, change: Change): Snapshot {
  return {
    ...before,
    at: change.at,
    agent: change.agent ?? before.agent,
    inventory: change.inventory ?? before.inventory,
    totals: change.totals ?? before.totals,
    ...Object.fromEntries(LISTS.flatMap(name => listApply(name, before, change)))
  }
}

function listDiff<K extends keyof Lists>(
  name: K,
  before: Lists,
  after: Lists
): [K, KeyedChange<Lists[K][number]>][] {
  type Item = Lists[K][number]
  const key: (item: Item) => string = KEYS[name]
  const change = keyedDiff<Item>(before[name], after[name], key, NEWEST_FIRST.has(name))
  return change ? [[name, change]] : []
}

function listApply<K extends keyof Lists>(
  name: K,
  before: Lists,
  change: Change
): [K, readonly Lists[K][number][]][] {
  type Item = Lists[K][number]
  const key: (item: Item) => string = KEYS[name]
  const differs = change[name] as KeyedChange<Item> | undefined
  return differs ? [[name, keyedApply<Item>(before[name], differs, key, NEWEST_FIRST.has(name))]] : []
}

function keyedDiff<T>(
  before: readonly T[],
  after: readonly T[],
  key: (item: T) => string,
  newestFirst: boolean
): KeyedChange<T> | undefined {
  if (before === after) return undefined
  const known = new Map(before.map(item => [key(item), item]))
  const now = new Set(after.map(key))
  const put = after.filter(item => !same(known.get(key(item)), item))
  const gone = [...known.keys()].filter(name => !now.has(name))
  const kept = [...known.keys()].filter(name => now.has(name))
  const fresh = [...now].filter(name => !known.has(name))
  const expected = newestFirst ? [...fresh, ...kept] : [...kept, ...fresh]
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
  { put = [], gone = [], order }: KeyedChange<T>,
  key: (item: T) => string,
  newestFirst: boolean
): readonly T[] {
  const items = new Map(before.map(item => [key(item), item]))
  const fresh = put.filter(item => !items.has(key(item)))
  for (const name of gone) items.delete(name)
  for (const item of put) items.set(key(item), item)
  if (order) return order.flatMap(name => items.get(name) ?? [])
  const kept = [...items.values()]
  return newestFirst ? [...fresh, ...kept.slice(0, kept.length - fresh.length)] : kept
}
