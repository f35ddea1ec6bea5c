import { useMemo } from 'preact/hooks'
import type { HolderView } from '../../report/snapshot/holder-view.ts'
import { count, formatMs } from '../model/format.ts'
import {
  clockOf,
  differenceOf,
  HOLDER_FILTERS,
  holderRows,
  lastOut,
  toneOf,
  type Clock
} from '../model/holder-rows.ts'
import type { Lane } from '../model/lanes.ts'
import type { ViewProps } from '../model/view.ts'
import { formatAge, holderName } from '../model/why-behind.ts'
import { useNarrow } from '../use.ts'
import { Search } from '../parts/search.tsx'
import { Choice } from '../parts/choice.tsx'
import { Mark } from '../parts/mark.tsx'
import { Term } from '../parts/term.tsx'
import { Name } from '../parts/name.tsx'
import { Virtual } from '../parts/virtual.tsx'

/** The height of a row, in px. On a phone a holder has three lines. */
const ROW_HEIGHT = { wide: 30, narrow: 70 }
const ROWS = { wide: 12, narrow: 7 }

interface HoldersProps extends ViewProps {
  holders: readonly HolderView[]
  /** Drains that are over. */
  lanes: readonly Lane[]
  now: number
}

/** Every APISIX object that lists nodes: how far its owner and its gateways are behind Kubernetes, and in what. */
export function Holders({ holders, lanes, now, view, onView }: HoldersProps) {
  const { holders: filter, seek } = view
  const layout = useNarrow() ? 'narrow' : 'wide'
  const rows = useMemo(() => holderRows(holders, filter, seek), [holders, filter, seek])
  const out = useMemo(() => lastOut(lanes), [lanes])
  const open = (key: string) => {
    onView({ find: key, show: 'all' })
    document.getElementById('drains')?.scrollIntoView()
  }
  return (
    <section aria-labelledby="holders">
      <div class="section-head">
        <h2 id="holders">
          <Term of="holder">Holders</Term>
        </h2>
        <Search
          what="holders"
          placeholder="Holder, Service, node"
          value={seek}
          onSearch={seek => onView({ seek }, 'typed')}
        />
        <Choice
          label="Show"
          options={HOLDER_FILTERS}
          value={filter}
          onChange={to => onView({ holders: to })}
        />
        <span class="quiet spread">
          {rows.length === holders.length
            ? count(holders.length, 'holder')
            : `${rows.length.toLocaleString('en-US')} of ${count(holders.length, 'holder')}`}
        </span>
      </div>
      {rows.length === 0 ? (
        <p class="empty">
          {holders.length === 0
            ? 'No holder has been read.'
            : filter === 'differing'
              ? 'All are as Kubernetes and every gateway have them.'
              : 'None of that kind.'}
        </p>
      ) : (
        <Virtual
          items={rows}
          rowHeight={ROW_HEIGHT[layout]}
          rows={ROWS[layout]}
          label="Holders"
          keyOf={({ key }) => key}
          isStop={() => true}
          head={
            <div role="row" class="holder-row head" aria-rowindex={1}>
              <span role="columnheader">Holder</span>
              <span role="columnheader" class="owner">
                Owner
              </span>
              <span role="columnheader" class="number lag">
                <Term of="node">Nodes</Term>
              </span>
              <span role="columnheader" class="number lag">
                Out
              </span>
              <span role="columnheader" class="number lag">
                In
              </span>
              <span role="columnheader" class="number lag">
                <Term of="behind">Behind</Term>
              </span>
              <span role="columnheader" class="differs">
                Difference
              </span>
            </div>
          }
          row={(holder, _, tabIndex) => (
            <HolderRow
              holder={holder}
              out={out.get(holder.key)}
              now={now}
              tabIndex={tabIndex}
              onOpen={() => open(holder.key)}
            />
          )}
        />
      )}
    </section>
  )
}

interface HolderRowProps {
  holder: HolderView
  out: Clock | undefined
  now: number
  tabIndex: 0 | -1
  onOpen: () => void
}

function HolderRow({ holder, out, now, tabIndex, onOpen }: HolderRowProps) {
  const { key, name, service, owner, form, nodes, behind, lags, revision } = holder
  const differs = differenceOf(holder, now)
  return (
    <div class="holder-row" role="presentation">
      <span role="cell" class="holder">
        <button
          type="button"
          class="plain-link"
          tabIndex={tabIndex}
          onClick={onOpen}
          aria-label={`Drains of ${holderName(holder)}`}
        >
          <Name text={service ?? name ?? key} />
        </button>
        {(service ?? name) && <span class="quiet clip">{key}</span>}
      </span>
      <span role="cell" class="clip quiet owner">
        {owner === 'unknown' ? 'unknown writer' : owner}
      </span>
      <span role="cell" class="number lag" title={`revision ${revision}\n${nodes.join('\n')}`}>
        {form === 'discovery' ? <span class="quiet">by discovery</span> : nodes.length}
      </span>
      <Lag of={out} />
      <Lag of={clockOf(lags)} />
      <span role="cell" class="number lag">
        {behind ? formatAge(Math.max(0, now - behind.since)) : <span class="quiet">–</span>}
      </span>
      <span role="cell" class="clip differs" title={differs}>
        {differs ? (
          <Mark tone={toneOf(holder, now)} label={differs} />
        ) : (
          <span class="quiet">none known</span>
        )}
      </span>
    </div>
  )
}

const Lag = ({ of }: { of: Clock | undefined }) => (
  <span role="cell" class="number lag" title={of?.each}>
    {of ? formatMs(of.ms) : <span class="quiet">–</span>}
  </span>
)
