import { useMemo } from 'preact/hooks'
import { agentNow, useTick, type Shown } from '../agent.ts'
import { count, formatMs } from '../model/format.ts'
import {
  isOpen,
  laneAt,
  rowsOf,
  scaleOf,
  waitsOf,
  type Lane,
  type Rollout,
  type Row
} from '../model/lanes.ts'
import { SHOWS, type View, type ViewProps } from '../model/view.ts'
import { STANDING, wordsOf } from '../model/words.ts'
import { Axis, Legend, Track } from '../parts/track.tsx'
import { Choice, Mark, Name, Search, Section, Time } from '../parts/basics.tsx'
import { Rows } from '../parts/rows.tsx'
import { Detail } from './detail.tsx'

interface DrainsProps extends ViewProps {
  shown: Shown
  lanes: readonly Lane[]
}

/** The rollouts of each workload, a row each. One opens into its pods: each a lane, while it drains and after it is gone. */
export function Drains({ shown, lanes, view, onView }: DrainsProps) {
  const { show, find } = view
  const found = useMemo(() => lanes.filter(lane => keeps(lane, show, find)), [lanes, show, find])
  const open = laneAt(lanes, view.drain)
  const at = shown.snapshot?.at ?? 0
  const isWhole = find !== '' || show !== 'all'
  const rows = useMemo(
    () => rowsOf(found, { at, opened: view.open, isWhole, selected: open }),
    [found, at, view.open, isWhole, open]
  )
  useTick(found.some(({ drain, live }) => live && isOpen(drain)))
  const waits = useMemo(() => waitsOf(found), [found])
  const now = agentNow(shown)
  const scaleMs = scaleOf(found, now)
  const close = () => {
    onView({ drain: '' })
    document.querySelector<HTMLElement>(`[data-lane="${CSS.escape(open?.id ?? '')}"]`)?.focus()
  }
  return (
    <Section
      id="drains"
      title="Drains"
      class={open ? 'drains with-detail' : 'drains'}
      head={
        <>
          <Search
            what="drains"
            placeholder="Pod, namespace, workload"
            value={find}
            onSearch={find => onView({ find }, 'typed')}
          />
          <Choice label="Show" options={SHOWS} value={show} onChange={to => onView({ show: to })} />
          <span class="quiet spread">{count(found.length, 'drain')}</span>
        </>
      }
    >
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
        <Rows
          items={rows}
          label="Drains"
          keyOf={keyOf}
          isStop={({ kind }) => kind !== 'reason'}
          reveal={open && keyOf({ kind: 'lane', lane: open })}
          head={<LaneHead scaleMs={scaleMs} />}
          row={(row, tabIndex) =>
            row.kind === 'reason' ? (
              <p class="reason" role="cell">
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
                isOpen={row.lane.id === open?.id}
                onOpen={() => onView({ drain: row.lane.id === open?.id ? '' : row.lane.id })}
              />
            )
          }
        />
      )}
      <Legend />
      {open && shown.snapshot && <Detail lane={open} snapshot={shown.snapshot} onClose={close} />}
    </Section>
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
        Sync lag
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

/** The rest of a row, behind its button. A click anywhere in the row opens it too. */
interface RowProps {
  now: number
  tabIndex: 0 | -1
  isOpen: boolean
  onOpen: () => void
}

interface OpenerProps extends Omit<RowProps, 'now'> {
  before?: string
  name: string
  lane?: string
}

/** The button of a row, for the keyboard. */
const Opener = ({ before = '', name, lane, tabIndex, isOpen, onOpen }: OpenerProps) => (
  <span role="cell" class="pod">
    <button
      type="button"
      data-lane={lane}
      tabIndex={tabIndex}
      aria-expanded={isOpen}
      aria-label={`${before}${name}`}
      onClick={event => {
        event.stopPropagation()
        onOpen()
      }}
    >
      <Name before={before} text={name} />
    </button>
  </span>
)

function LaneRow({ lane, scaleMs, now, ...opener }: RowProps & { lane: Lane; scaleMs: number }) {
  const { drain, lagMs, start } = lane
  return (
    <div class={opener.isOpen ? 'lane-row selected' : 'lane-row'} role="presentation" onClick={opener.onOpen}>
      <Opener {...opener} before={`${drain.namespace}/`} name={drain.pod} lane={lane.id} />
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
        <Mark {...wordsOf(lane)} />
      </span>
    </div>
  )
}

const TimeLeft = ({ deadline, now }: { deadline: number | null; now: number }) => (
  <span role="cell" class="number left">
    {deadline === null ? '' : formatMs(Math.max(0, deadline - now))}
  </span>
)

function RolloutRow({ rollout, now, ...opener }: RowProps & { rollout: Rollout }) {
  const { name, lanes, proved, waiting, unproved, tookMs, worstLagMs, deadline } = rollout
  // The present counts more than what was before.
  const standing = waiting > 0 ? 'waiting' : unproved > 0 ? 'unproved' : 'proved'
  return (
    <div class="lane-row rollout" role="presentation" onClick={opener.onOpen}>
      <Opener {...opener} name={name} />
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
        <Mark {...STANDING[standing]} label={`${rollout[standing]} ${STANDING[standing].label}`} />
      </span>
    </div>
  )
}
