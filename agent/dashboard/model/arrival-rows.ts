import type { ArrivalView } from '../../report/snapshot/snapshot.ts'
import type { LagSample } from '../../report/snapshot/drain-view.ts'

/** The times that pods took to arrive, as samples of the lag. */
export const arrivalSamples = (arrivals: readonly ArrivalView[]): readonly LagSample[] =>
  arrivals.flatMap(({ routedAt, readyAt, gateways }) =>
    routedAt === null
      ? []
      : [{ at: routedAt, ms: routedAt - readyAt, grade: gateways.every(isSure) ? 'barrier' : 'observed' }]
  )

const isSure = ({ evidence }: ArrivalView['gateways'][number]) => evidence === 'barrier'

/** A pod on its way in, or one that arrived lately. */
interface ArrivalRow {
  readonly arrival: ArrivalView
  readonly lagMs: number | null
  /** The gateway that routed to it last, or one that does not yet. */
  readonly slowest: string
}

/** Pods that have not arrived yet come first, then the newest. */
export function arrivalRows(arrivals: readonly ArrivalView[], most: number): readonly ArrivalRow[] {
  const waiting = arrivals.filter(({ routedAt }) => routedAt === null)
  const arrived = arrivals.filter(({ routedAt }) => routedAt !== null)
  return [...waiting, ...arrived].slice(0, most).map(arrival => {
    const { gateways, routedAt, readyAt } = arrival
    const behind = gateways.find(({ at }) => at === null)
    const last = gateways.toSorted((a, b) => (b.at ?? 0) - (a.at ?? 0))[0]
    return {
      arrival,
      lagMs: routedAt === null ? null : routedAt - readyAt,
      slowest: (behind ?? last)?.name ?? '–'
    }
  })
}
