import type { DesiredDrain } from '../../gateway/barrier/desired-entry.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import type { Millis, PodUid } from '../../rules/drain/facts.ts'
import type { World } from '../../rules/plan/world.ts'
import type { Memories, Memory } from '../gather/memory.ts'
import type { Sources } from '../gather/sources.ts'
import { desiredEntry, entryContext } from './seal-decision.ts'
import { createLingering } from './lingering.ts'
import { takePredecessors } from './predecessor.ts'
import { createSuccession } from './succession.ts'

/** The entries that every gateway should hold. The only owner of that state. */
interface DesiredEntries {
  current(): readonly DesiredDrain[]
  /** Called when a drain is over. Its entry stays for some time. */
  ended(drain: Drain, memory: Memory, now: Millis): void
  /** Decides the entries anew, and gives them to the barrier. */
  renew(facts: EntryFacts): void
}

/** The facts of one round. */
interface EntryFacts {
  readonly drains: Drains
  /** The pods whose hooks are held. */
  readonly held: ReadonlySet<PodUid>
  /** The pods whose addresses may belong to other pods now. */
  readonly unsure: ReadonlySet<PodUid>
  /** Whether addresses of gone pods can be distinguished from those of new pods. */
  readonly isSureOfGone: boolean
  readonly now: Millis
}

interface DesiredOptions {
  readonly sources: Pick<Sources, 'barrier' | 'cluster' | 'inventory'>
  readonly world: World
  readonly memories: Pick<Memories, 'of'>
  /** Whether the containers of an ending pod may still serve the requests that they have. */
  readonly mayStillServe: (drain: Drain, now: Millis) => boolean
  /** A dry run changes nothing in a gateway. */
  readonly dryRun: boolean
  readonly foreignHoldMs: number | undefined
  readonly lingerMs: number | undefined
}

export function createDesired(options: DesiredOptions): DesiredEntries {
  const { sources, world, memories, mayStillServe, dryRun, foreignHoldMs, lingerMs } = options
  const { barrier, cluster } = sources
  const succession = createSuccession(cluster, world)
  const lingering = createLingering(succession, lingerMs)
  let desired: readonly DesiredDrain[] = []

  return {
    current: () => desired,
    ended(drain, memory, now) {
      if (barrier) lingering.add(drain, memory, now)
    },
    renew({ drains, held, unsure, isSureOfGone, now }) {
      if (!barrier) return
      const context = entryContext(sources, barrier, world, drains, succession, now, foreignHoldMs, held)
      const entries: DesiredDrain[] = []
      for (const drain of drains.values()) {
        const entry = desiredEntry(drain, memories.of(drain.uid), context)
        if (entry && (mayStillServe(drain, now) || !unsure.has(drain.uid))) entries.push(entry)
      }
      barrier.gateways(cluster.gateways())
      if (!isSureOfGone) lingering.clear()
      else for (const pod of takePredecessors(sources, drains)) lingering.adopt(pod)
      const left = lingering.entries(world, drains, now)
      desired = dryRun ? [] : [...entries, ...left]
      barrier.desire(desired)
      succession.keep()
    }
  }
}
