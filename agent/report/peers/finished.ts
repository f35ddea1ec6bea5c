import { drainName } from '../snapshot/drain-view.ts'
import type { DrainView } from '../snapshot/drain-view.ts'
import { drainHere, type Clocks } from './clocks.ts'
import { joinDrains } from './merge.ts'

/**
 * A finished drain as each agent saw it, by the agent's id. The times are by that agent's clock. Views are joined only for display: if
 * agents passed on converted times, the error of each conversion would add up.
 */
export interface Finished {
  readonly name: string
  readonly views: Readonly<Record<string, DrainView>>
}

export const finishedBy = (by: string, drain: DrainView): Finished => ({
  name: drainName(drain),
  views: { [by]: drain }
})

/** Joins the views of each agent. */
export const joinFinished = ({ name, views }: Finished, more: Finished): Finished => ({
  name,
  views: {
    ...views,
    ...Object.fromEntries(
      Object.entries(more.views).map(([by, drain]) => {
        const known = Object.hasOwn(views, by) ? views[by] : undefined
        return [by, known ? joinDrains(known, drain) : drain]
      })
    )
  }
})

/** The drain as all agents together know it, by this agent's clock. */
export const joinedHere = ({ views }: Finished, clocks: Clocks): DrainView =>
  Object.entries(views)
    .map(([by, drain]) => drainHere(drain, clocks.aheadOf(by)))
    .reduce(joinDrains)
