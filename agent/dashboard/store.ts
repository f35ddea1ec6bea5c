import type { Snapshot } from '../report/snapshot/snapshot.ts'

export type Link = 'connecting' | 'live' | 'lost'

/** All that the page shows. */
export interface Shown {
  readonly link: Link
  readonly snapshot: Snapshot | undefined
  /** When the snapshot arrived, by `performance.now()`. */
  readonly receivedAt: number
}

export interface Store {
  get(): Shown
  /** Calls the listener once per frame at most. Returns the function that unsubscribes it. */
  subscribe(listener: () => void): () => void
  link(link: Link): void
  take(snapshot: Snapshot): void
}

export function createStore(): Store {
  const listeners = new Set<() => void>()
  let shown: Shown = { link: 'connecting', snapshot: undefined, receivedAt: 0 }
  let drawing = false

  const set = (differs: Partial<Shown>) => {
    shown = { ...shown, ...differs }
    if (drawing) return
    drawing = true
    requestAnimationFrame(() => {
      drawing = false
      for (const listener of listeners) listener()
    })
  }
  return {
    get: () => shown,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    link: link => set({ link }),
    take: snapshot => set({ snapshot, receivedAt: performance.now(), link: 'live' })
  }
}
