import { useMemo } from 'preact/hooks'
import { drainsCsv } from '../model/csv.ts'
import { count, formatMs } from '../model/format.ts'
import { isOpen, laneAt, scaleOf, type Lane } from '../model/lanes.ts'
import { rowsOf, type Rollout, type Row } from '../model/rollout.ts'
import { ORDERS, SHOWS, SPANS, type View, type ViewProps } from '../model/view.ts'
import { waitsOf } from '../model/waits.ts'
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

/** The height of a row, in px. On a phone a row has two lines. */
const ROW_HEIGHT = { wide: 32, narrow: 58 }
const ROWS = { wide: 14, narrow: 9 }

interface DrainsProps extends ViewProps {
  shown: Shown
  lanes: readonly Lane[]
}

/** The rollouts of each workload, a row each. One opens into its pods: each a lane, while it drains and after it is gone. */
export function Drains({ shown, lanes, view, onView }: DrainsProps) {
  const { show, order, scale, find } = view
  const found = useMemo(() => lanes.filter(lane => keeps(lane, show, find)), [lanes, show, find])
  const open = laneAt(lanes, view.drain)
  const at = shown.snapshot?.at ?? 0
  const isWhole = find !== '' || show === 'not proved'
  const rows = useMemo(
    () => rowsOf(found, { at, order, opened: view.open, isWhole, selected: open }),
    [found, at, order, view.open, isWhole, open]
  )
  const layout = useNarrow() ? 'narrow' : 'wide'
  useTick(found.some(({ drain, live }) => live && isOpen(drain)))
  const waits = useMemo(() => waitsOf(found), [found])
  const now = agentNow(shown)
  const scaleMs = scaleOf(found, scale, now)
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
          isStop={({ kind }) => kind !== 'reason'}
          reveal={open && keyOf({ kind: 'lane', lane: open })}
          head={<LaneHead scaleMs={scaleMs} />}
          row={(row, _, tabIndex) =>
            row.kind === 'reason' ? (
              <p class="reason" role="cell" title={row.text}>
                {row.text}
              </p>
            ) : row.kind === 'rollout' ? (
              <RolloutRow
                rollout={row.rollout}
                now={now}
                tabIndex={tabIndex}
                isOpen={row.isOpen}
                onOpen={() => onView({ open: row.isOpen ? '' : row.rollout.id })}
              />
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

const keyOf = (row: Row) =>
  row.kind === 'rollout'
    ? row.rollout.id
    : `${row.lane.id} ${row.kind === 'reason' ? 'reason' : row.lane.live}`

function keeps({ drain, live, standing }: Lane, show: View['show'], find: string): boolean {
  if (show === 'live' && !live) return false
  if (show === 'not proved' && standing !== 'unproved') return false
  const words = find.trim().toLowerCase()
  if (words === '') return true
  const holders = drain.holders.map(({ key }) => key).join(' ')
  const text = `${drain.namespace}/${drain.pod} ${drain.owner ?? ''} ${drain.ips.join(' ')} ${drain.uid} ${holders}`
  return text.toLowerCase().includes(words)
}

function LaneHead({ scaleMs }: { scaleMs: number }) {
  return (
    <div role="row" class="lane-row head" aria-rowindex={1}>
      <span role="columnheader">Workload, pod</span>
      <span role="columnheader" class="began">
        Began
      </span>
      <span role="columnheader" class="lane">
        <span class="hidden">From the decision to delete it, to scale</span>
        <Axis scaleMs={scaleMs} />
      </span>
      <span role="columnheader" class="number lag">
        <Term of="sync lag">Sync lag</Term>
      </span>
      <span role="columnheader" class="number left">
        Time left
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
  const { drain, standing, lagMs, start } = lane
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
      <span role="cell" class={lagMs === null ? 'number lag quiet' : 'number lag'}>
        {lagMs !== null ? formatMs(lagMs) : isOpen(drain) ? formatMs(Math.max(0, now - start)) : '–'}
      </span>
      <TimeLeft deadline={isOpen(drain) ? drain.deadline : null} now={now} />
      <span role="cell" class="state">
        <Mark {...(standing === 'proved' && grade ? GRADES[grade] : STANDING[standing])} />
      </span>
    </div>
  )
}

const TimeLeft = ({ deadline, now }: { deadline: number | null; now: number }) => (
  <span role="cell" class="number left">
    {deadline === null ? '' : formatMs(Math.max(0, deadline - now))}
  </span>
)

interface RolloutRowProps {
  rollout: Rollout
  now: number
  tabIndex: 0 | -1
  isOpen: boolean
  onOpen: () => void
}

function RolloutRow({ rollout, now, tabIndex, isOpen, onOpen }: RolloutRowProps) {
  const { name, lanes, proved, waiting, unproved, tookMs, worstLagMs, deadline } = rollout
  const [standing, number] =
    unproved > 0
      ? (['unproved', unproved] as const)
      : waiting > 0
        ? (['waiting', waiting] as const)
        : (['proved', proved] as const)
  return (
    <div class="lane-row rollout" role="presentation" onClick={onOpen}>
      <span role="cell" class="pod">
        <button
          type="button"
          tabIndex={tabIndex}
          aria-expanded={isOpen}
          aria-label={name}
          onClick={event => {
            event.stopPropagation()
            onOpen()
          }}
        >
          <Name text={name} />
        </button>
      </span>
      <span role="cell" class="quiet began">
        <Time at={lanes[0]?.start ?? now} now={now} />
      </span>
      <span role="cell" class="quiet lane clip">
        {[
          count(lanes.length, 'pod'),
          `${proved} proved`,
          ...(waiting > 0 ? [`${waiting} waiting`] : []),
          ...(unproved > 0 ? [`${unproved} not proved`] : []),
          ...(tookMs === null ? [] : [`all gone in ${formatMs(tookMs)}`])
        ].join(' · ')}
      </span>
      <span role="cell" class="number lag">
        {worstLagMs === null ? '–' : formatMs(worstLagMs)}
      </span>
      <TimeLeft deadline={deadline} now={now} />
      <span role="cell" class="state">
        <Mark {...STANDING[standing]} label={`${number} ${STANDING[standing].label}`} />
      </span>
    </div>
  )
}
