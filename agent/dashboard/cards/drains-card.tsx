import { useMemo, useState } from 'preact/hooks'
import { count, formatMs } from '../model/format.ts'
import { isOpen, scaleOf, type Lane, type Span } from '../model/lanes.ts'
import { rolloutsOf, type Rollout } from '../model/rollout.ts'
import { waitOf, waitsOf } from '../model/waits.ts'
import type { Shown } from '../store.ts'
import { agentNow, useTick } from '../use.ts'
import { Choice } from '../parts/choice.tsx'
import { Detail } from '../parts/detail.tsx'
import { Mark, STANDING } from '../parts/mark.tsx'
import { Axis, Legend, Track } from '../parts/track.tsx'
import { Virtual } from '../parts/virtual.tsx'

const ROW_HEIGHT = 32
const ROWS = 14
const STATES = ['all', 'live', 'not proved'] as const
const ORDERS = ['stuck first', 'rollouts'] as const
const SPANS: readonly Span[] = ['ack', 'gone']

type Row =
  | { readonly kind: 'lane'; readonly lane: Lane }
  | { readonly kind: 'rollout'; readonly rollout: Rollout; readonly key: string }

/** Every ending pod as a lane, live and after it is gone. */
export function Drains({ shown, lanes }: { shown: Shown; lanes: readonly Lane[] }) {
  const [state, setState] = useState<(typeof STATES)[number]>('all')
  const [order, setOrder] = useState<(typeof ORDERS)[number]>('stuck first')
  const [span, setSpan] = useState<Span>('ack')
  const [query, setQuery] = useState('')
  const [selected, select] = useState<string>()
  const found = useMemo(() => lanes.filter(lane => keeps(lane, state, query)), [lanes, state, query])
  const rows = useMemo(() => rowsOf(found, order), [found, order])
  useTick(found.some(({ drain, live }) => live && isOpen(drain)))
  const waits = useMemo(() => waitsOf(found), [found])
  const now = agentNow(shown)
  const scaleMs = scaleOf(found, span, now)
  const open = lanes.find(({ id }) => id === selected)
  const close = () => {
    select(undefined)
    document.querySelector<HTMLElement>(`[data-lane="${CSS.escape(selected ?? '')}"]`)?.focus()
  }
  return (
    <section aria-labelledby="drains" class={open ? 'drains with-detail' : 'drains'}>
      <div class="section-head">
        <h2 id="drains">Drains</h2>
        <input
          type="search"
          placeholder="Pod, namespace, workload"
          aria-label="Search drains"
          value={query}
          onInput={event => setQuery(event.currentTarget.value)}
        />
        <Choice label="Show" options={STATES} value={state} onChange={setState} />
        <Choice label="Order" options={ORDERS} value={order} onChange={setOrder} />
        <Choice label="Scale to" options={SPANS} value={span} onChange={setSpan} />
        <span class="quiet spread">{count(found.length, 'drain')}</span>
      </div>
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
          rowHeight={ROW_HEIGHT}
          rows={ROWS}
          label="Drains"
          keyOf={keyOf}
          head={<LaneHead scaleMs={scaleMs} />}
          row={row =>
            row.kind === 'rollout' ? (
              <RolloutRow rollout={row.rollout} />
            ) : (
              <LaneRow
                lane={row.lane}
                scaleMs={scaleMs}
                now={now}
                selected={row.lane.id === selected}
                onSelect={() => select(row.lane.id === selected ? undefined : row.lane.id)}
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

function keeps({ drain, live, standing }: Lane, state: (typeof STATES)[number], query: string): boolean {
  if (state === 'live' && !live) return false
  if (state === 'not proved' && standing !== 'unproved') return false
  const text = `${drain.namespace}/${drain.pod} ${drain.owner ?? ''} ${drain.ips.join(' ')}`.toLowerCase()
  return text.includes(query.trim().toLowerCase())
}

function rowsOf(lanes: readonly Lane[], order: (typeof ORDERS)[number]): readonly Row[] {
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
      <span role="columnheader">
        <span class="hidden">From the decision to delete it, to scale</span>
        <Axis scaleMs={scaleMs} />
      </span>
      <span role="columnheader">Waits for, or last gateway</span>
      <span role="columnheader" class="number">
        Sync lag
      </span>
      <span role="columnheader">State</span>
    </div>
  )
}

interface LaneRowProps {
  lane: Lane
  scaleMs: number
  now: number
  selected: boolean
  onSelect: () => void
}

function LaneRow({ lane, scaleMs, now, selected, onSelect }: LaneRowProps) {
  const { drain, standing, lagMs, slowest } = lane
  const grade = drain.verdict?.grade
  return (
    <div class={selected ? 'lane-row selected' : 'lane-row'} role="presentation" onClick={onSelect}>
      <span role="cell" class="pod">
        <button
          type="button"
          data-lane={lane.id}
          aria-expanded={selected}
          onClick={event => {
            event.stopPropagation()
            onSelect()
          }}
          title={`${drain.namespace}/${drain.pod}`}
        >
          <span class="quiet">{drain.namespace}/</span>
          {drain.pod}
        </button>
      </span>
      <span role="cell">
        <Track lane={lane} scaleMs={scaleMs} now={now} />
      </span>
      <span role="cell" class="quiet clip" title={waitOf(lane)}>
        {waitOf(lane) || (slowest ?? '–')}
      </span>
      <span role="cell" class="number">
        {lagMs === null
          ? isOpen(drain)
            ? `${formatMs(Math.max(0, drain.deadline - now))} left`
            : '–'
          : formatMs(lagMs)}
      </span>
      <span role="cell">
        <Mark
          tone={STANDING[standing].tone}
          label={standing === 'proved' && grade ? grade : STANDING[standing].label}
        />
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
