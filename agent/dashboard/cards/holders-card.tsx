import { useMemo } from 'preact/hooks'
import type { HolderView } from '../../report/snapshot/holder-view.ts'
import { count, formatMs } from '../model/format.ts'
import { holderLags } from '../model/gateway-lags.ts'
import { HOLDER_FILTERS, differenceOf, holderRows, toneOf } from '../model/holder-rows.ts'
import type { Quantiles } from '../model/lag-series.ts'
import type { Lane } from '../model/lanes.ts'
import type { ViewProps } from '../model/view.ts'
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
const SHOWN_NODES = 4

interface HoldersProps extends ViewProps {
  holders: readonly HolderView[]
  lanes: readonly Lane[]
  now: number
}

/** Every APISIX object that lists nodes, and its differences between EndpointSlices, Admin API and gateways. */
export function Holders({ holders, lanes, now, view, onView }: HoldersProps) {
  const { holders: filter, seek } = view
  const layout = useNarrow() ? 'narrow' : 'wide'
  const rows = useMemo(() => holderRows(holders, filter, seek), [holders, filter, seek])
  const lags = useMemo(() => holderLags(lanes), [lanes])
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
        <p class="empty">{holders.length === 0 ? 'No holder has been read.' : 'None of that kind.'}</p>
      ) : (
        <Virtual
          items={rows}
          rowHeight={ROW_HEIGHT[layout]}
          rows={ROWS[layout]}
          label="Holders"
          keyOf={({ key }) => key}
          head={
            <div role="row" class="holder-row head" aria-rowindex={1}>
              <span role="columnheader">Holder</span>
              <span role="columnheader" class="owner">
                Owner
              </span>
              <span role="columnheader" class="nodes">
                <Term of="node">Nodes</Term>
              </span>
              <span role="columnheader" class="number lag">
                Let go after
              </span>
              <span role="columnheader" class="differs">
                Difference
              </span>
            </div>
          }
          row={holder => <HolderRow holder={holder} lag={lags.get(holder.key)} now={now} />}
        />
      )}
    </section>
  )
}

interface HolderRowProps {
  holder: HolderView
  lag: Quantiles | undefined
  now: number
}

function HolderRow({ holder, lag, now }: HolderRowProps) {
  const { key, name, owner, form, nodes } = holder
  const differs = differenceOf(holder, now)
  return (
    <div class="holder-row" role="presentation">
      <span role="cell" class="holder">
        <Name text={key} />
        {name && (
          <span class="quiet clip" title={name}>
            {name}
          </span>
        )}
      </span>
      <span role="cell" class="clip quiet owner">
        {owner === 'unknown' ? 'unknown writer' : owner}
      </span>
      <span role="cell" class="clip nodes" title={nodes.join('\n')}>
        <span class="n">{nodes.length}</span>{' '}
        <span class="quiet">
          {form === 'discovery' ? 'found by discovery' : nodes.slice(0, SHOWN_NODES).join('  ')}
          {nodes.length > SHOWN_NODES && ' …'}
        </span>
      </span>
      <span role="cell" class="number lag" title={lag && `longest ${formatMs(lag.max)}`}>
        {lag ? formatMs(lag.p50) : <span class="quiet">–</span>}
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
