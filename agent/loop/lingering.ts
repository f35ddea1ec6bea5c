import type { DesiredEntry } from '../confirm/barrier.ts'
import type { Drain } from '../drain/drain.ts'
import type { Millis, PodUid } from '../drain/facts.ts'
import type { World } from '../plan/world.ts'
import { lastEntry } from './entries.ts'
import type { Memory } from './memory.ts'

/** How long an entry outlives its drain, in ms: the slowest uploads that still find the node in the list they began with. */
export const LINGER_MS = 120_000

/**
 * Entries of drains that are forgotten. A request has the list of nodes that its access phase saw, and may connect long
 * after (decision 0002): without the entry it would try a pod that is gone, and, in a quick rollout, nothing but those.
 */
export interface Lingering {
  add(drain: Drain, memory: Memory, now: Millis): void
  entries(world: World, now: Millis): readonly DesiredEntry[]
  /** Who has the addresses now cannot be known: none of them is kept. */
  clear(): void
}

export function createLingering(lingerMs = LINGER_MS): Lingering {
  const over = new Map<PodUid, { readonly drain: Drain; readonly memory: Memory; readonly until: Millis }>()
  return {
    add(drain, memory, now) {
      // Undone: the pod serves on. On its host's address: the next pod there may have the same ports at once.
      if (drain.phase === 'undone' || drain.pod.hostNetwork) return
      over.set(drain.uid, { drain, memory, until: now + lingerMs })
    },
    clear: () => over.clear(),
    entries(world, now) {
      const entries: DesiredEntry[] = []
      for (const [uid, { drain, memory, until }] of over) {
        const entry = now < until ? lastEntry(drain, memory, world) : undefined
        // An address that a living pod has by now is never taken from it again.
        if (entry) entries.push(entry)
        else over.delete(uid)
      }
      return entries
    }
  }
}
