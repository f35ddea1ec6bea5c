import { hasSuccessors, type DesiredDrain } from '../../gateway/barrier/desired-entry.ts'
import { areLive } from '../../kubernetes/reflect/watch-status.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { World } from '../../rules/plan/holder.ts'
import type { Memories, Memory } from '../gather/memory.ts'
import type { Sources } from '../gather/sources.ts'
import { desiredEntry, entryContext } from './seal-decision.ts'
import { createLingering, takePredecessors } from './lingering.ts'
import { inheritedStops } from '../gather/observe.ts'
import { createSuccession } from './succession.ts'

/** The entries that every gateway should hold. The only owner of that state. */
interface DesiredEntries {
  current(): readonly DesiredDrain[]
  /** Called when a drain is over. Its entry stays for some time. */
  ended(drain: Drain, memory: Memory, now: Millis): void
  /** Decides the entries anew, and gives them to the barrier. */
  renew(facts: EntryFacts): void
}

/** What the agent does with an entry. `keep`: it neither puts nor renews it, and does not remove it. */
type Fate = 'put' | 'keep' | 'drop'

/** Decides the fate of entries; see `createAddressOwnership`. */
export interface Fates {
  /** @param isHeld this agent holds a hook of the pod */
  ofDrain(drain: Drain, isHeld: boolean, now: Millis): Fate
  /** The fate of the entries that outlive their drains. */
  ofGone(): Fate
}

/** The facts of one round. */
interface EntryFacts {
  readonly drains: Drains
  /** The pods whose hooks are held. */
  readonly held: ReadonlySet<PodUid>
  readonly now: Millis
}

interface DesiredOptions {
  readonly sources: Pick<Sources, 'barrier' | 'cluster'>
  readonly world: World
  readonly memories: Pick<Memories, 'of'>
  readonly ownership: Fates
  /** A dry run changes nothing in a gateway. */
  readonly dryRun: boolean
  readonly foreignHoldMs: number | undefined
  readonly lingerMs: number | undefined
  readonly mayCome: (pod: PodFact) => boolean
}

export function createDesired(options: DesiredOptions): DesiredEntries {
  const { sources, world, memories, ownership, dryRun, foreignHoldMs, lingerMs, mayCome } = options
  const { barrier, cluster } = sources
  const succession = createSuccession(cluster, world, mayCome)
  const lingering = createLingering(succession, lingerMs)
  let desired: readonly DesiredDrain[] = []

  return {
    current: () => desired,
    ended(drain, memory, now) {
      if (barrier) lingering.add(drain, memory, now)
    },
    renew({ drains, held, now }) {
      if (!barrier) return
      const context = entryContext(sources, barrier, world, drains, succession, now, foreignHoldMs, held)
      // Without slices the agent knows no successors. That is no reason to take back those of another agent.
      const knowsSuccessors = areLive(cluster.parts(), ['pods', 'endpointslices'])
      const by = (fate: Fate, entry: DesiredDrain): DesiredDrain => ({
        ...entry,
        successors: knowsSuccessors || hasSuccessors(entry) ? entry.successors : undefined,
        frozen: fate === 'keep'
      })
      const entries: DesiredDrain[] = []
      for (const drain of drains.values()) {
        const entry = desiredEntry(drain, memories.of(drain.uid), context)
        const fate = ownership.ofDrain(drain, held.has(drain.uid), now)
        if (entry && fate !== 'drop') entries.push(by(fate, entry))
      }
      const gateways = cluster.gateways()
      barrier.gateways(gateways)
      // A worker would still choose the pod, or has not said that it would not. A silent gateway forgets the entry by itself.
      const isChosen = (uid: PodUid): boolean =>
        gateways.some(({ id }) => {
          const { word, problem } = barrier.reading(uid, id) ?? {}
          return problem === '' && word !== undefined && (!word.complete || word.places > 0)
        })
      const fate = ownership.ofGone()
      if (fate === 'drop') lingering.clear()
      else for (const pod of takePredecessors(sources, drains)) lingering.adopt(pod, now)
      const seen = { now: fate === 'keep' ? ('unseen' as const) : now, isChosen }
      for (const entry of lingering.entries(world, drains, seen)) entries.push(by(fate, entry))
      if (!dryRun)
        for (const stop of inheritedStops(sources, now))
          if (stop.isOver && !drains.has(stop.uid)) barrier.lift(stop)
      desired = dryRun ? [] : entries
      barrier.desire(desired)
      succession.keep()
    }
  }
}
