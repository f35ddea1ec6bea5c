import type { DrainView } from '../snapshot/drain-view.ts'
import { drainHere } from './clocks.ts'
import { joinDrains } from './merge.ts'

/** The drains that another agent has reported. */
interface Told {
  /** The name of its pod. */
  readonly name: string
  /** False if it does not answer: its drains are then old, and the hooks that it holds are unknown. */
  readonly live: boolean
  readonly drains: ReadonlyMap<string, DrainView>
  /** How far its clock is ahead of this agent's, in ms. */
  readonly ahead: number
}

interface UnionOptions {
  readonly own: ReadonlyMap<string, DrainView>
  readonly others: readonly Told[]
  /** A finished drain, by uid. */
  readonly finished: (uid: string) => DrainView | undefined
  readonly now: number
}

/** If only a lost agent knows a drain, the drain is kept for this long after its deadline, in ms. */
const FORGOTTEN_MS = 60_000

interface Joined {
  readonly from: readonly unknown[]
  readonly drain: DrainView
}

/** Joins the drains of all agents by uid, those of this agent first, in its order. A drain with unchanged parts stays the same object. */
export function createUnion(): (options: UnionOptions) => readonly DrainView[] {
  let known: ReadonlyMap<string, Joined> = new Map()

  const joinAll = (uid: string, { own, others, finished }: UnionOptions): Joined | undefined => {
    const mine = own.get(uid)
    const tellers = others.filter(({ drains }) => drains.has(uid))
    const over = mine && finished(uid)
    const hooks = tellers
      .filter(({ live }) => live)
      .reduce((sum, { drains }) => sum + (drains.get(uid)?.hooks ?? 0), mine?.hooks ?? 0)
    const from = [
      mine,
      ...tellers.flatMap(({ ahead, drains }) => [ahead, drains.get(uid)]),
      over,
      hooks,
      mine ? '' : tellers[0]?.name
    ]
    const before = known.get(uid)
    if (before && before.from.length === from.length && from.every((part, i) => part === before.from[i]))
      return before
    const theirs = tellers.flatMap(({ ahead, drains }) => {
      const drain = drains.get(uid)
      return drain ? [drainHere(drain, ahead)] : []
    })
    const [first, ...rest] = [...(mine ? [mine] : []), ...theirs, ...(over ? [over] : [])]
    if (!first) return undefined
    const joined = rest.reduce(joinDrains, first)
    const onlyFrom = mine ? {} : { onlyFrom: tellers[0]?.name ?? '' }
    return { from, drain: { ...joined, hooks, ...onlyFrom } }
  }

  return options => {
    const { own, others, finished, now } = options
    const isCurrent = (uid: string, { live, drains, ahead }: Told) =>
      !own.has(uid) &&
      !finished(uid) &&
      (live || (drains.get(uid)?.deadline ?? 0) - ahead + FORGOTTEN_MS > now)
    const more = others.flatMap(told => [...told.drains.keys()].filter(uid => isCurrent(uid, told)))
    const next = new Map<string, Joined>()
    for (const uid of new Set([...own.keys(), ...more])) {
      const joined = joinAll(uid, options)
      if (joined) next.set(uid, joined)
    }
    known = next
    return [...next.values()].map(({ drain }) => drain)
  }
}
