import { useMemo } from 'preact/hooks'
import type { Snapshot, WorkloadView } from '../../report/snapshot/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import { NEEDED, decidedBy, worthOf, type Sleep, type Sooner } from '../model/worth.ts'
import { Mark } from '../parts/mark.tsx'
import { Tile } from '../parts/tile.tsx'

const MOST = 10

/** Numbers for decisions about sleeps and hooks: the sleep that would have been enough, the gain of hooks, and the pods without a hook. */
export function Worth({ snapshot }: { snapshot: Snapshot }) {
  const { agent, gateways, totals, inventory } = snapshot
  const { hooks } = inventory
  const { all, each } = useMemo(() => worthOf(snapshot), [snapshot])
  const decided = decidedBy(gateways)
  const { without, bare, early } = hooks.counts
  return (
    <section aria-labelledby="worth">
      <div class="section-head">
        <h2 id="worth">Sleeps and hooks</h2>
        <span class="quiet spread">{count(hooks.routed, 'routed workload')}</span>
      </div>
      <dl class="tiles">
        <Tile
          label="A sleep would have needed"
          value={all.sleep.ms === null ? '–' : formatMs(all.sleep.ms)}
          note={sleepNote(all.sleep)}
        />
        <Tile
          label={`Pods end sooner than with sleep ${formatMs(agent.sleepMs)}`}
          value={percent(all.sooner)}
          note={
            all.sooner.share === null
              ? 'no pod with an answered hook has ended yet'
              : `of the time from the decision to the end, over ${count(all.sooner.drains, 'pod')} · ${savedNote(totals)}`
          }
        />
        <Tile
          label="Failures avoided, at most"
          value={decided ? (decided.moved + decided.succeeded).toLocaleString('en-US') : '–'}
          note={
            decided
              ? `${count(decided.moved, 'request')} moved to another node, ${decided.succeeded} to successors; ${decided.refused} refused, ${decided.bypasses} sent to a pod that ends: since the gateways started`
              : 'only the plugin counts them'
          }
        />
        <Tile
          label="Workloads without a safe hook"
          value={(without + bare + early).toLocaleString('en-US')}
          note={`${without} without a hook, ${bare} without a fallback, ${early} with a container that ends early`}
        />
      </dl>
      {each.length > 0 && (
        <div class="wide" tabIndex={0} role="region" aria-label="Sleeps by workload">
          <table class="plain full cards">
            <thead>
              <tr>
                <th scope="col">Workload</th>
                <th scope="col">Drains</th>
                <th scope="col">Sleep for 99.9 %</th>
                <th scope="col">Longest</th>
                <th scope="col">Ends sooner by</th>
              </tr>
            </thead>
            <tbody>
              {each.slice(0, MOST).map(({ workload, sleep, sooner }) => (
                <tr key={workload}>
                  <th scope="row">{workload}</th>
                  <td data-label="Drains">{sleep.drains.toLocaleString('en-US')}</td>
                  <td data-label="Sleep for 99.9 %">
                    {sleep.ms === null ? <span class="quiet">{whyNot(sleep)}</span> : formatMs(sleep.ms)}
                  </td>
                  <td data-label="Longest">{sleep.longestMs === null ? '–' : formatMs(sleep.longestMs)}</td>
                  <td data-label="Ends sooner by">{percent(sooner)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {each.length > MOST && (
            <p class="quiet">And {count(each.length - MOST, 'other workload')} with fewer drains.</p>
          )}
        </div>
      )}
      {LACKING.map(([kind, what, title]) => (
        <Lacking key={kind} what={what} title={title} list={hooks[kind]} all={hooks.counts[kind]} />
      ))}
    </section>
  )
}

const LACKING = [
  ['without', 'No hook', 'A pod without a hook gets its SIGTERM while gateways may still send requests.'],
  [
    'early',
    'A container without the hook',
    'This container ends at once, whatever the answer to the others is.'
  ],
  ['bare', 'No fallback', 'If the agent does not answer, the container ends at once.']
] as const

interface LackingProps {
  what: string
  title: string
  list: readonly WorkloadView[]
  all: number
}

function Lacking({ what, title, list, all }: LackingProps) {
  if (all === 0) return null
  return (
    <p class="why">
      <Mark tone="busy" label={what} title={title} />{' '}
      {list
        .slice(0, MOST)
        .map(({ name, pods }) => `${name} (${count(pods, 'pod')})`)
        .join(', ')}
      {all > Math.min(list.length, MOST) && ` and ${all - Math.min(list.length, MOST)} more`}
    </p>
  )
}

/** The saved time; if it is none, the reason. */
const savedNote = ({ savedMs, hooks }: Snapshot['totals']): string =>
  savedMs >= 0
    ? `${formatMs(savedMs)} saved over ${count(hooks, 'hook')}`
    : `${count(hooks, 'hook')} took ${formatMs(-savedMs)} longer: they waited for requests in flight, which a sleep does not`

const whyNot = ({ drains, enough }: Sleep): string =>
  enough
    ? 'none is known to be enough'
    : `too few: ${drains.toLocaleString('en-US')} of ${NEEDED.toLocaleString('en-US')}`

function sleepNote(sleep: Sleep): string {
  const { drains, ms, longestMs } = sleep
  if (ms !== null) return `for 99.9 % of ${count(drains, 'drain')}, beside this agent`
  const longest = longestMs === null ? '' : ` · longest ${formatMs(longestMs)}`
  return `${whyNot(sleep)}${longest}`
}

/** The share in percent, rounded towards zero. */
const percent = ({ share }: Sooner): string =>
  share === null ? '–' : `${Math.trunc(share * 100)} %`.replace('-', '−')
