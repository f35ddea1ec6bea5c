import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { HolderView } from '../../report/snapshot/holder-view.ts'
import type { GatewayView } from '../../report/snapshot/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import type { Lane } from '../model/lanes.ts'
import { cellOf, columnsOf, lastOut, matrixRows, namespacesOf, type Cell } from '../model/matrix-rows.ts'
import type { ViewProps } from '../model/view.ts'
import { behindFor, formatAge, LATE_MS, whyBehind } from '../model/why-behind.ts'
import { useNarrow } from '../use.ts'
import { Mark } from '../parts/mark.tsx'
import { Name } from '../parts/name.tsx'
import { Virtual } from '../parts/virtual.tsx'

/** The height of a row, in px. */
const ROW_HEIGHT = 30
const ROWS = 10

interface MatrixProps extends ViewProps {
  readonly holders: readonly HolderView[]
  readonly gateways: readonly GatewayView[]
  readonly over: readonly Lane[]
  /** The agent's clock in ms, cut to whole seconds. */
  readonly now: number
}

/** For each upstream, how far each gateway is behind Kubernetes. On a phone there are no columns for gateways. */
export function Matrix({ holders, gateways, over, now, view, onView }: MatrixProps) {
  const narrow = useNarrow()
  const namespaces = useMemo(() => namespacesOf(holders), [holders])
  const rows = useMemo(() => matrixRows(holders, view.ns), [holders, view.ns])
  const columns = useMemo(() => (narrow ? [] : columnsOf(gateways, holders)), [narrow, gateways, holders])
  const out = useMemo(() => lastOut(over), [over])
  const late = rows.filter(({ behind }) => behind !== null).length
  const open = (key: string) => {
    onView({ find: key, show: 'all' })
    document.getElementById('drains')?.scrollIntoView()
  }
  // Preact skips an element that is the same object. So each second, only the rows of upstreams that are behind are drawn again.
  const kept = useMemo(() => new Map<string, { holder: HolderView; row: JSX.Element }>(), [columns, out])
  const rowOf = (holder: HolderView, tabIndex: 0 | -1) => {
    const place = `${holder.key} ${tabIndex}`
    const known = kept.get(place)
    if (known?.holder === holder && holder.behind === null) return known.row
    const row = (
      <Row holder={holder} columns={columns} out={out} now={now} tabIndex={tabIndex} onOpen={open} />
    )
    kept.set(place, { holder, row })
    return row
  }
  const style = { '--gateways': Math.max(1, columns.length) }
  return (
    <section aria-labelledby="matrix">
      <div class="section-head">
        <h2 id="matrix">Gateways and upstreams</h2>
        <label class="quiet">
          Namespace{' '}
          <select value={view.ns} onChange={event => onView({ ns: event.currentTarget.value })}>
            <option value="">all</option>
            {namespaces.map(name => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <span class="quiet spread">
          {late === 0 ? 'none behind Kubernetes' : `${late.toLocaleString('en-US')} behind Kubernetes`} ·{' '}
          {count(rows.length, 'upstream')}
          {columns.length < gateways.length &&
            !narrow &&
            ` · ${columns.length} of ${count(gateways.length, 'gateway')}`}
        </span>
      </div>
      {rows.length === 0 ? (
        <p class="empty">No upstream of this namespace.</p>
      ) : (
        <Virtual
          items={rows}
          rowHeight={ROW_HEIGHT}
          rows={ROWS}
          label="Gateways and upstreams"
          keyOf={({ key }) => key}
          isStop={() => true}
          head={
            <div role="row" class="matrix-row head" aria-rowindex={1} style={style}>
              <span role="columnheader">Upstream</span>
              <span role="columnheader">{narrow ? 'Behind' : 'Admin API'}</span>
              {columns.map(({ id, name }) => (
                <span role="columnheader" key={id} class="clip" title={name}>
                  {name}
                </span>
              ))}
            </div>
          }
          row={(holder, _, tabIndex) => rowOf(holder, tabIndex)}
        />
      )}
    </section>
  )
}

interface RowProps {
  readonly holder: HolderView
  readonly columns: readonly GatewayView[]
  readonly out: ReadonlyMap<string, number>
  readonly now: number
  readonly tabIndex: 0 | -1
  readonly onOpen: (key: string) => void
}

function Row({ holder, columns, out, now, tabIndex, onOpen }: RowProps) {
  const { key } = holder
  return (
    <div class="matrix-row" role="presentation" style={{ '--gateways': Math.max(1, columns.length) }}>
      <span role="cell" class="holder">
        <button
          type="button"
          class="plain-link"
          tabIndex={tabIndex}
          onClick={() => onOpen(key)}
          aria-label={`Drains of ${key}`}
        >
          <Name text={key} />
        </button>
      </span>
      <Owner holder={holder} now={now} alone={columns.length === 0} />
      {columns.map(gateway => (
        <GatewayCell key={gateway.id} cell={cellOf(holder, gateway, out, now)} />
      ))}
    </div>
  )
}

/** How far the owner is behind. `alone`: no gateway has a column, so this cell shows the delay of late gateways too. */
function Owner({ holder, now, alone }: { holder: HolderView; now: number; alone: boolean }) {
  const { behind, revision, form } = holder
  const ms = behindFor(holder, now)
  const isLate = behind !== null && (alone || behind.cause !== 'gateways')
  const title = whyBehind(holder)
  return (
    <span role="cell" class="clip" title={title || `revision ${revision}`}>
      {isLate && ms !== null ? (
        <Behind ms={ms} />
      ) : (
        <span class="quiet">{form === 'discovery' ? 'by discovery' : revision}</span>
      )}
    </span>
  )
}

/** How long a cell has been behind. It is red after the time after which the headline reports it. */
const Behind = ({ ms }: { ms: number }) => (
  <Mark tone={ms > LATE_MS ? 'bad' : 'busy'} label={`${formatAge(ms)} behind`} />
)

function GatewayCell({ cell: { behindMs, revision, inMs, outMs, why } }: { cell: Cell }) {
  const lags = [
    ...(inMs === null ? [] : [`in ${formatMs(inMs)}`]),
    ...(outMs === null ? [] : [`out ${formatMs(outMs)}`])
  ].join(' · ')
  return (
    <span role="cell" class="clip" title={why}>
      {behindMs === null ? null : <Behind ms={behindMs} />}{' '}
      <span class="quiet">{[revision ?? '–', ...(lags ? [lags] : [])].join(' · ')}</span>
    </span>
  )
}
