import type { LeadsTo } from '../../rules/plan/leads-to.ts'
import { count } from '../model/format.ts'
import { Mark } from '../parts/mark.tsx'

const MOST = 10

/** The places that send requests to pods and that the agent cannot edit, each with a remedy. Shows nothing if there are none. */
export function Hidden({ places }: { places: readonly LeadsTo[] }) {
  if (places.length === 0) return null
  return (
    <section aria-labelledby="hidden">
      <div class="section-head">
        <h2 id="hidden">Places that hide pods</h2>
        <span class="quiet spread">{count(places.length, 'place')}</span>
      </div>
      <p class="quiet">The agent cannot take pods out here. Their hooks get a 503 at once.</p>
      <ul class="causes">
        {places.slice(0, MOST).map(({ holder, name, why, change, pods, count: led }) => (
          <li key={`${holder} ${why}`}>
            <p>
              <Mark tone="busy" label={holder} /> {name && <span class="quiet">{name}</span>}
            </p>
            <p class="why">{why}</p>
            <p class="small">
              May lead to {count(led, 'pod')}: {pods.join(', ')}
              {led > pods.length && ' and others'}
            </p>
            <p class="small">
              <b>What to do</b> {change}
            </p>
          </li>
        ))}
      </ul>
      {places.length > MOST && (
        <p class="quiet">
          And {places.length - MOST} more: <code>apisix-drain doctor</code> names all of them.
        </p>
      )}
    </section>
  )
}
