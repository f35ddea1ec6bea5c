import { apply, type Message } from '../report/snapshot/snapshot-change.ts'
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
  /** Takes one message. Returns false if an earlier message is missing: the caller must then reconnect. */
  take(message: Message): boolean
}

export function createStore(): Store {
  const listeners = new Set<() => void>()
  let shown: Shown = { link: 'connecting', snapshot: undefined, receivedAt: 0 }
  let seq: number | undefined
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
    take(message) {
      const receivedAt = performance.now()
      if (message.kind === 'snapshot') {
        seq = message.seq
        set({ snapshot: message.snapshot, receivedAt, link: 'live' })
        return true
      }
      if (!shown.snapshot || seq === undefined || message.seq !== seq + 1) return false
      seq = message.seq
      set({ snapshot: apply(shown.snapshot, message.change), receivedAt })
      return true
    }
  }
}
