/** Subscribers to changes. Notifications carry no payload: subscribers read the new state themselves. */
interface Listeners {
  /** Returns the function that unsubscribes. */
  readonly add: (listener: () => void) => () => void
  readonly tell: () => void
}

export function createListeners(): Listeners {
  const all = new Set<() => void>()
  return {
    add: listener => {
      all.add(listener)
      return () => void all.delete(listener)
    },
    tell: () => {
      for (const listener of all) listener()
    }
  }
}
