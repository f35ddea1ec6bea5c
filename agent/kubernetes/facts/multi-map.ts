/**
 * Several values under one key. A key with one value, by far the most common case, costs only a map entry. So an index over 10,000 pods
 * does not hold 10,000 arrays.
 */
export function createMultiMap<K, V extends object>() {
  const values = new Map<K, V | Set<V>>()
  return {
    get(key: K): readonly V[] {
      const held = values.get(key)
      return held === undefined ? [] : held instanceof Set ? [...held] : [held]
    },
    add(key: K, value: V): void {
      const held = values.get(key)
      if (held instanceof Set) held.add(value)
      else values.set(key, held === undefined ? value : new Set([held, value]))
    },
    /** Removes this very object. */
    remove(key: K, value: V): void {
      const held = values.get(key)
      if (held === value) values.delete(key)
      if (!(held instanceof Set) || !held.delete(value) || held.size > 1) return
      for (const only of held) values.set(key, only)
    }
  }
}
