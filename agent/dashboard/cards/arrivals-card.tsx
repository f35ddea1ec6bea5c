import type { ArrivalView } from '../../page/snapshot.ts'
import { formatMs } from '../model/format.ts'
import { arrivalRows } from '../model/arrival-rows.ts'
import { Mark } from '../parts/mark.tsx'

const MOST = 6

/** The newest pods, and those that have not arrived yet: which gateways route to them, and what is missing. */
export function Arrivals({ arrivals }: { arrivals: readonly ArrivalView[] }) {
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Pods that became Ready">
      <table class="plain full">
        <thead>
          <tr>
            <th scope="col">Pod</th>
            <th scope="col">Routed to after</th>
            <th scope="col">Last gateway</th>
            <th scope="col">Holders</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {arrivalRows(arrivals, MOST).map(({ arrival, lagMs, slowest }) => (
            <tr key={`${arrival.uid} ${arrival.readyAt}`}>
              <th scope="row">
                <span class="quiet">{arrival.namespace}/</span>
                {arrival.pod}
              </th>
              <td>{lagMs === null ? '–' : formatMs(lagMs)}</td>
              <td class="quiet">{slowest}</td>
              <td class="quiet">{arrival.holders.map(({ key }) => key).join(' ')}</td>
              <td>
                <Mark tone={lagMs === null ? 'busy' : 'good'} label={lagMs === null ? 'waiting' : 'routed'} />
                {arrival.why && <div class="quiet small">{arrival.why}</div>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
