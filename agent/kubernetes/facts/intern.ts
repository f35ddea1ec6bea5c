/** Enough for every namespace, ReplicaSet and port list of a large cluster. */
const MOST = 20_000

/**
 * Returns the same object for equal values. JSON.parse makes a new string for every "kube-system". With 10,000 pods, such copies
 * would take most of the facts' memory. When it is full it forgets everything, so that names of past ReplicaSets do not pile up.
 */
export function createIntern(most = MOST) {
  const texts = new Map<string, string>()
  const lists = new Map<string, readonly number[]>()
  return {
    text(value: string): string {
      const known = texts.get(value)
      if (known !== undefined) return known
      if (texts.size >= most) texts.clear()
      texts.set(value, value)
      return value
    },
    numbers(values: readonly number[]): readonly number[] {
      const key = values.join()
      const known = lists.get(key)
      if (known) return known
      if (lists.size >= most) lists.clear()
      lists.set(key, values)
      return values
    }
  }
}

export const intern = createIntern()
