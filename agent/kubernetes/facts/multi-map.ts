/**
 * Several values under one key. A key with one value, by far the most common case, costs only a map entry. So an index over 10,000 pods
 * does not hold 10,000 arrays.
 */
interface MultiMap<K, V extends object> {
  get(key: K): readonly V[]
  add(key: K, value: V): void
  /** Removes this very object. */
  remove(key: K, value: V): void
  readonly size: number
}

export function createMultiMap<K, V extends object>(): MultiMap<K, V> {
  const values = new Map<K, V | readonly V[]>()
  const get = (key: K): readonly V[] => {
    const held = values.get(key)
    if (held === undefined) return []
    return isList(held) ? held : [held]
  }
  return {
    get,
    add(key, value) {
      const held = get(key)
      values.set(key, held.length === 0 ? value : [...held, value])
    },
    remove(key, value) {
      const left = get(key).filter(held => held !== value)
      const [only] = left
      if (only === undefined) values.delete(key)
      else values.set(key, left.length === 1 ? only : left)
    },
    get size() {
      return values.size
    }
  }
}

function isList<V extends object>(held: V | readonly V[]): held is readonly V[] {
  return Array.isArray(held)
}
