import { same } from '../../base/same.ts'

/** A bounded list of named items, newest first. Each item has the number of its last change. */
export interface Records<T> {
  /** Adds the item, or joins it with the known one of that name. */
  put(item: T): void
  get(name: string): T | undefined
  /** The items that were added or changed after change number `seq`. */
  since(seq: number): readonly T[]
  /** The same list until something changes. */
  list(): readonly T[]
}

interface RecordsOptions<T> {
  readonly name: (item: T) => string
  readonly join: (known: T, item: T) => T
  /** The time of the item, in ms, by which the list is sorted. */
  readonly at: (item: T) => number
  /** Selects the items to keep, newest first. */
  readonly keep: (items: readonly T[]) => readonly T[]
  /** The others are dropped only beyond this number of items, because the selection costs time. */
  readonly most: number
  /** The number of the next change. */
  readonly next: () => number
}

interface Entry<T> {
  readonly item: T
  readonly seq: number
  /** Set when the item is added; later changes do not move it. */
  readonly at: number
}

export function createRecords<T>({ name, join, at, keep, most, next }: RecordsOptions<T>): Records<T> {
  const entries = new Map<string, Entry<T>>()
  let listed: readonly T[] | undefined

  const newestFirst = (): readonly T[] => {
    const sorted = [...entries].toSorted(
      ([a, { at: left }], [b, { at: right }]) => right - left || (a < b ? -1 : 1)
    )
    return keep(sorted.map(([, { item }]) => item))
  }
  const list = (): readonly T[] => (listed ??= newestFirst())

  return {
    put(item) {
      const key = name(item)
      const known = entries.get(key)
      const joined = known ? join(known.item, item) : item
      if (known && same(known.item, joined)) return
      entries.set(key, { item: joined, seq: next(), at: known?.at ?? at(item) })
      listed = undefined
      if (entries.size <= most) return
      const kept = new Set(list().map(name))
      for (const one of entries.keys()) if (!kept.has(one)) entries.delete(one)
    },
    get: key => entries.get(key)?.item,
    since: seq => [...entries.values()].filter(entry => entry.seq > seq).map(({ item }) => item),
    list
  }
}
