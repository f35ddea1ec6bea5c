/**
 * Several values under one key. A key with one value, by far the most common case, costs only a map entry. So an index over 10,000 pods
 * does not hold 10,000 arrays.
 */
interface MultiMap<K, V extends object> {
  get(key: K): readonly V[]
  add(key: K, value: V): void
  /** Removes this very object. */
  remove(key: K, value: V): void
}

export function createMultiMap<K, V extends object>(): MultiMap<K, V> {
  const values = new Map<K, V | Set<V>>()
  return {
    get(key) {
      const held = values.get(key)
      return held === undefined ? [] : held instanceof Set ? [...held] : [held]
    },
    add(key, value) {
      const held = values.get(key)
      if (held instanceof Set) held.add(value)
      else values.set(key, held === undefined ? value : new Set([held, value]))
    },
    remove(key, value) {
      const held = values.get(key)
      if (held === value) values.delete(key)
      if (!(held instanceof Set) || !held.delete(value) || held.size > 1) return
      for (const only of held) values.set(key, only)
    }
  }
}
