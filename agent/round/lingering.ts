import type { DesiredDrain } from '../barrier/barrier.ts'
import type { Drain } from '../drain/drain.ts'
import type { Millis, PodFact, PodUid } from '../drain/facts.ts'
import { nodesOf } from '../plan/match.ts'
import type { World } from '../plan/world.ts'

/** How long an entry outlives its drain, in ms: the slowest uploads that still find the node in the list they began with. */
export const LINGER_MS = 120_000

/**
 * Entries that outlive their drains. A request keeps the list of nodes that its access phase saw, and may connect much later (decision
 * 0002). Without the entry it would try pods that are gone, and in a quick rollout only such pods.
 */
interface Lingering {
  add(drain: Drain, now: Millis): void
  entries(world: World, now: Millis): readonly DesiredDrain[]
  /** Who has the addresses now cannot be known: none of them is kept. */
  clear(): void
}

export function createLingering(lingerMs = LINGER_MS): Lingering {
  const over = new Map<
    PodUid,
    { readonly pod: PodFact; readonly entry: DesiredDrain; readonly until: Millis }
  >()
  return {
    add({ phase, uid, pod }, now) {
      // Undone: the pod serves on. On its host's address: the next pod there may have the same ports at once.
      if (phase === 'undone' || pod.hostNetwork || pod.ips.length === 0) return
      const entry = { uid, nodes: nodesOf(pod, []), state: 'sealed', watch: false } as const
      over.set(uid, { pod, entry, until: now + lingerMs })
    },
    clear: () => over.clear(),
    entries(world, now) {
      const entries: DesiredDrain[] = []
      for (const [uid, { pod, entry, until }] of over) {
        // An address that a living pod has by now is never taken from it again.
        if (now < until && !isTaken(pod, world)) entries.push(entry)
        else over.delete(uid)
      }
      return entries
    }
  }
}

const isTaken = ({ uid, ips }: PodFact, world: World): boolean =>
  ips.some(ip => world.ownersOf(ip).some(owner => owner.uid !== uid))
