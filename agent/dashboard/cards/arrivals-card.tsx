import type { ArrivalView } from '../../report/snapshot/snapshot.ts'
import { formatMs } from '../model/format.ts'
import { arrivalRows } from '../model/arrival-rows.ts'
import { Mark } from '../parts/mark.tsx'
import { Name } from '../parts/name.tsx'
import { Time } from '../parts/time.tsx'

const MOST = 6

/** Pods that have not arrived yet, and the newest that have: which gateways route to each pod, and why others do not. */
export function Arrivals({ arrivals, now }: { arrivals: readonly ArrivalView[]; now: number }) {
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Pods that became Ready">
      <table class="plain full cards">
        <thead>
          <tr>
            <th scope="col">Pod</th>
            <th scope="col">Ready at</th>
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
                <Name before={`${arrival.namespace}/`} text={arrival.pod} />
              </th>
              <td class="quiet" data-label="Ready at">
                <Time at={arrival.readyAt} now={now} />
              </td>
              <td data-label="Routed to after">{lagMs === null ? '–' : formatMs(lagMs)}</td>
              <td class="quiet" data-label="Last gateway">
                {slowest}
              </td>
              <td class="quiet words" data-label="Holders">
                {arrival.holders.map(({ key }) => key).join(' ')}
              </td>
              <td class="words" data-label="State">
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
