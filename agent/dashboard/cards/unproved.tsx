import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { commandsFor } from '../model/commands.ts'
import { count } from '../model/format.ts'
import { lanesOf, type Lane } from '../model/lanes.ts'
import { Commands } from './commands-card.tsx'
import { Mark } from '../parts/mark.tsx'
import { Time } from '../parts/time.tsx'

const MOST = 10

/** The drains that were not proved, with the reasons and commands to check them. Shows nothing if all were proved. */
export function Unproved({ lanes, snapshot }: { lanes: readonly Lane[]; snapshot: Snapshot }) {
  const kept = lanesOf([], snapshot.unproved)
  const all = new Map([...kept, ...lanes].map(lane => [lane.id, lane]))
  const found = [...all.values()].filter(({ standing }) => standing === 'unproved')
  if (found.length === 0) return null
  return (
    <section aria-labelledby="unproved">
      <div class="section-head">
        <h2 id="unproved">Not proved</h2>
        <span class="quiet spread">{count(found.length, 'drain')}</span>
      </div>
      <ul class="causes">
        {found.slice(0, MOST).map(({ id, drain }) => (
          <li key={id}>
            <p>
              <Mark tone="bad" label={`${drain.namespace}/${drain.pod}`} />{' '}
              <span class="quiet">
                <Time at={drain.moments.seenAt} now={snapshot.at} />
              </span>
            </p>
            <p class="why">{drain.why}</p>
            {drain.gateways
              .filter(({ grade, why }) => !grade && why)
              .map(({ name, why }) => (
                <p key={name} class="small">
                  <b>{name}</b> {why}
                </p>
              ))}
            <details>
              <summary>See for yourself</summary>
              <Commands commands={commandsFor(drain, snapshot.gateways, snapshot.agent.reach)} />
            </details>
          </li>
        ))}
      </ul>
      {found.length > MOST && <p class="quiet">And {found.length - MOST} more, in the list of drains.</p>}
    </section>
  )
}
