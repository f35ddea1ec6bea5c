import type { Clocks } from './clocks.ts'
import type { Records } from './records.ts'

/** Keeps the result for each object until a clock changes. */
export function remembered<T extends object, S>(clocks: Clocks, show: (item: T) => S): (item: T) => S {
  const known = new WeakMap<T, { readonly changes: number; readonly shown: S }>()
  return item => {
    const changes = clocks.changes()
    let one = known.get(item)
    if (one?.changes !== changes) known.set(item, (one = { changes, shown: show(item) }))
    return one.shown
  }
}

/** The records as they are shown; the same list until a record or a clock changes. */
export function listOf<T, S>(clocks: Clocks, records: Records<T>, show: (item: T) => S): () => readonly S[] {
  let of: readonly T[] | undefined
  let at = -1
  let shown: readonly S[] = []
  return () => {
    const [list, changes] = [records.list(), clocks.changes()]
    if (of === list && at === changes) return shown
    of = list
    at = changes
    return (shown = list.map(show))
  }
}
