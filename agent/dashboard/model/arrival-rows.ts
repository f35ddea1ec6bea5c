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

/** A pod that has not arrived yet, or that arrived lately. It has arrived once every gateway routes to it. */
interface ArrivalRow {
  readonly arrival: ArrivalView
  readonly lagMs: number | null
  /** A gateway that does not route to the pod yet; otherwise the gateway that was the last to route to it. */
  readonly slowest: string
}

/** The first `most` rows: pods that have not arrived yet, then the others in the order of `arrivals`. */
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
