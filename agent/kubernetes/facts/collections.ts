/** Enough for every namespace, ReplicaSet and port list of a large cluster. */
const MOST = 20_000

/**
 * Returns the same object for equal values. JSON.parse makes a new string for every "kube-system". With 10,000 pods, such copies
 * would take most of the facts' memory. When it is full it forgets everything, so that names of past ReplicaSets do not pile up.
 */
export function createIntern(most = MOST) {
  const texts = new Map<string, string>()
  const values = new Map<string, unknown>()
  return {
    text(value: string): string {
      const known = texts.get(value)
      if (known !== undefined) return known
      if (texts.size >= most) texts.clear()
      texts.set(value, value)
      return value
    },
    value<T extends object>(value: T): T {
      const key = JSON.stringify(value)
      const known = values.get(key)
      if (known) return known as T
      if (values.size >= most) values.clear()
      values.set(key, value)
      return value
    }
  }
}

export const intern = createIntern()

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
