/** Subscribers to changes. Notifications carry no payload: subscribers read the new state themselves. */
export function createListeners() {
  const all = new Set<() => void>()
  return {
    /** Returns the function that unsubscribes. */
    add(listener: () => void): () => void {
      all.add(listener)
      return () => void all.delete(listener)
    },
    notify: () => {
      for (const listener of all) listener()
    }
  }
}
