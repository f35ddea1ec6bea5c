import { useMemo } from 'preact/hooks'
import { longLivedWords } from '../../rules/drain/long-lived.ts'
import { drainsCsv } from '../model/csv.ts'
import { count, formatMs } from '../model/format.ts'
import { isOpen, laneAt, scaleOf, type Lane } from '../model/lanes.ts'
import { rolloutsOf, type Rollout } from '../model/rollout.ts'
import { ORDERS, SHOWS, SPANS, type View, type ViewProps } from '../model/view.ts'
import { waitOf, waitsOf } from '../model/waits.ts'
import { GRADES, STANDING } from '../model/words.ts'
import type { Shown } from '../store.ts'
import { agentNow, useNarrow, useTick } from '../use.ts'
import { Search } from '../parts/search.tsx'
import { Choice } from '../parts/choice.tsx'
import { Detail } from '../parts/detail.tsx'
import { Download } from '../parts/download.tsx'
import { Mark } from '../parts/mark.tsx'
import { Term } from '../parts/term.tsx'
import { Name } from '../parts/name.tsx'
import { Time } from '../parts/time.tsx'
import { Axis, Legend, Track } from '../parts/track.tsx'
import { Virtual } from '../parts/virtual.tsx'

/** The height of a row, in px. On a phone a lane has three lines. */
const ROW_HEIGHT = { wide: 32, narrow: 76 }
const ROWS = { wide: 14, narrow: 7 }

type Row =
  | { readonly kind: 'lane'; readonly lane: Lane }
  | { readonly kind: 'rollout'; readonly rollout: Rollout; readonly key: string }

interface DrainsProps extends ViewProps {
  shown: Shown
  lanes: readonly Lane[]
}

/** Every ending pod as a lane, while it drains and after it is gone. */
export function Drains({ shown, lanes, view, onView }: DrainsProps) {
  const { show, order, scale, find } = view
  const found = useMemo(() => lanes.filter(lane => keeps(lane, show, find)), [lanes, show, find])
  const rows = useMemo(() => rowsOf(found, order), [found, order])
  const layout = useNarrow() ? 'narrow' : 'wide'
  useTick(found.some(({ drain, live }) => live && isOpen(drain)))
  const waits = useMemo(() => waitsOf(found), [found])
  const now = agentNow(shown)
  const scaleMs = scaleOf(found, scale, now)
  const open = laneAt(lanes, view.drain)
  const close = () => {
    onView({ drain: '' })
    document.querySelector<HTMLElement>(`[data-lane="${CSS.escape(open?.id ?? '')}"]`)?.focus()
  }
  return (
    <section aria-labelledby="drains" class={open ? 'drains with-detail' : 'drains'}>
      <div class="section-head">
        <h2 id="drains">
          <Term of="drain">Drains</Term>
        </h2>
        <Search
          what="drains"
          placeholder="Pod, namespace, workload"
          value={find}
          onSearch={find => onView({ find }, 'typed')}
        />
        <Choice label="Show" options={SHOWS} value={show} onChange={to => onView({ show: to })} />
        <Choice label="Order" options={ORDERS} value={order} onChange={to => onView({ order: to })} />
        <Choice label="Scale to" options={SPANS} value={scale} onChange={to => onView({ scale: to })} />
        <span class="quiet spread">{count(found.length, 'drain')}</span>
        <Download name="drains" disabled={found.length === 0} csv={() => drainsCsv(found)} />
      </div>
      {view.drain !== '' && !open && (
        <p class="note">
          The drain of this link is not among those that the agent keeps. Its Event on the pod, or the log,
          may still have it.
        </p>
      )}
      {waits.length > 0 && (
        <ul class="causes">
          {waits.map(({ why, count: drains }) => (
            <li key={why}>
              <b>{drains.toLocaleString('en-US')}</b> wait for {why}
            </li>
          ))}
        </ul>
      )}
      {rows.length === 0 ? (
        <p class="empty">
          {lanes.length === 0 ? 'No pod has ended since the agent started.' : 'None of that kind.'}
        </p>
      ) : (
        <Virtual
          items={rows}
          rowHeight={ROW_HEIGHT[layout]}
          rows={ROWS[layout]}
          label="Drains"
          keyOf={keyOf}
          isStop={isLane}
          reveal={open && keyOf({ kind: 'lane', lane: open })}
          head={<LaneHead scaleMs={scaleMs} />}
          row={(row, _, tabIndex) =>
            row.kind === 'rollout' ? (
              <RolloutRow rollout={row.rollout} />
            ) : (
              <LaneRow
                lane={row.lane}
                scaleMs={scaleMs}
                now={now}
                tabIndex={tabIndex}
                selected={row.lane.id === open?.id}
                onSelect={() => onView({ drain: row.lane.id === open?.id ? '' : row.lane.id })}
              />
            )
          }
        />
      )}
      <Legend />
      {open && shown.snapshot && <Detail lane={open} snapshot={shown.snapshot} onClose={close} />}
    </section>
  )
}

const keyOf = (row: Row) => (row.kind === 'lane' ? `${row.lane.id} ${row.lane.live}` : row.key)

const isLane = ({ kind }: Row) => kind === 'lane'

function keeps({ drain, live, standing }: Lane, show: View['show'], find: string): boolean {
  if (show === 'live' && !live) return false
  if (show === 'not proved' && standing !== 'unproved') return false
  const words = find.trim().toLowerCase()
  if (words === '') return true
  const holders = drain.holders.map(({ key }) => key).join(' ')
  const text = `${drain.namespace}/${drain.pod} ${drain.owner ?? ''} ${drain.ips.join(' ')} ${drain.uid} ${holders}`
  return text.toLowerCase().includes(words)
}

function rowsOf(lanes: readonly Lane[], order: View['order']): readonly Row[] {
  if (order === 'stuck first') return lanes.map(lane => ({ kind: 'lane', lane }))
  return rolloutsOf(lanes).flatMap((rollout): Row[] => [
    { kind: 'rollout', rollout, key: `${rollout.name} ${rollout.lanes[0]?.id}` },
    ...rollout.lanes.map(lane => ({ kind: 'lane' as const, lane }))
  ])
}

function LaneHead({ scaleMs }: { scaleMs: number }) {
  return (
    <div role="row" class="lane-row head" aria-rowindex={1}>
      <span role="columnheader">Pod</span>
      <span role="columnheader" class="began">
        Began
      </span>
      <span role="columnheader" class="lane">
        <span class="hidden">From the decision to delete it, to scale</span>
        <Axis scaleMs={scaleMs} />
      </span>
      <span role="columnheader" class="waits">
        Waits for, or last
      </span>
      <span role="columnheader" class="number lag">
        <Term of="sync lag">Sync lag</Term>
      </span>
      <span role="columnheader" class="state">
        State
      </span>
    </div>
  )
}

interface LaneRowProps {
  lane: Lane
  scaleMs: number
  now: number
  tabIndex: 0 | -1
  selected: boolean
  onSelect: () => void
}

function LaneRow({ lane, scaleMs, now, tabIndex, selected, onSelect }: LaneRowProps) {
  const { drain, standing, lagMs, slowest, start } = lane
  const left = drain.longLived ? `left to the pod: ${longLivedWords(drain.longLived)}` : ''
  const last = waitOf(lane) || left || (slowest ?? '–')
  const grade = drain.verdict?.grade
  return (
    <div class={selected ? 'lane-row selected' : 'lane-row'} role="presentation" onClick={onSelect}>
      <span role="cell" class="pod">
        <button
          type="button"
          data-lane={lane.id}
          tabIndex={tabIndex}
          aria-expanded={selected}
          aria-label={`${drain.namespace}/${drain.pod}`}
          onClick={event => {
            event.stopPropagation()
            onSelect()
          }}
        >
          <Name before={`${drain.namespace}/`} text={drain.pod} />
        </button>
      </span>
      <span role="cell" class="quiet began">
        <Time at={start} now={now} />
      </span>
      <span role="cell" class="lane">
        <Track lane={lane} scaleMs={scaleMs} now={now} />
      </span>
      <span role="cell" class="quiet clip waits" title={last}>
        {last}
      </span>
      <span role="cell" class="number lag">
        {lagMs === null
          ? isOpen(drain)
            ? `${formatMs(Math.max(0, drain.deadline - now))} left`
            : '–'
          : formatMs(lagMs)}
      </span>
      <span role="cell" class="state">
        <Mark {...(standing === 'proved' && grade ? GRADES[grade] : STANDING[standing])} />
      </span>
    </div>
  )
}

function RolloutRow({ rollout }: { rollout: Rollout }) {
  const { name, lanes, proved, waiting, unproved, tookMs, worstLagMs } = rollout
  return (
    <div class="rollout-row" role="presentation">
      <span role="cell" class="clip">
        {name}
      </span>
      <span role="cell" class="quiet">
        {[
          count(lanes.length, 'pod'),
          `${proved} proved`,
          ...(waiting > 0 ? [`${waiting} waiting`] : []),
          ...(unproved > 0 ? [`${unproved} not proved`] : []),
          ...(worstLagMs === null ? [] : [`slowest ${formatMs(worstLagMs)}`]),
          ...(tookMs === null ? [] : [`all gone in ${formatMs(tookMs)}`])
        ].join(' · ')}
      </span>
    </div>
  )
}
