import { useMemo, useState } from 'preact/hooks'
import type { HolderView } from '../../page/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import { holderLags } from '../model/gateway-lags.ts'
import { HOLDER_FILTERS, differenceOf, holderRows, type HolderFilter } from '../model/holder-rows.ts'
import type { Quantiles } from '../model/lag-series.ts'
import type { Lane } from '../model/lanes.ts'
import { Choice } from '../parts/choice.tsx'
import { Mark } from '../parts/mark.tsx'
import { Virtual } from '../parts/virtual.tsx'

const ROW_HEIGHT = 30
const ROWS = 12
const SHOWN_NODES = 4

interface HoldersProps {
  holders: readonly HolderView[]
  lanes: readonly Lane[]
  now: number
}

/** Every APISIX object that lists nodes, and where EndpointSlices, Admin API and gateways differ. */
export function Holders({ holders, lanes, now }: HoldersProps) {
  const [filter, setFilter] = useState<HolderFilter>('all')
  const [query, setQuery] = useState('')
  const rows = useMemo(() => holderRows(holders, filter, query), [holders, filter, query])
  const lags = useMemo(() => holderLags(lanes), [lanes])
  return (
    <section aria-labelledby="holders">
      <div class="section-head">
        <h2 id="holders">Holders</h2>
        <input
          type="search"
          placeholder="Key, name, owner, node"
          aria-label="Search holders"
          value={query}
          onInput={event => setQuery(event.currentTarget.value)}
        />
        <Choice label="Show" options={HOLDER_FILTERS} value={filter} onChange={setFilter} />
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
          rowHeight={ROW_HEIGHT}
          rows={ROWS}
          label="Holders"
          keyOf={({ key }) => key}
          head={
            <div role="row" class="holder-row head" aria-rowindex={1}>
              <span role="columnheader">Holder</span>
              <span role="columnheader">Owner</span>
              <span role="columnheader">Nodes</span>
              <span role="columnheader" class="number">
                Let go after
              </span>
              <span role="columnheader">Difference</span>
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
      <span role="cell" class="clip" title={key}>
        {key} {name && <span class="quiet">{name}</span>}
      </span>
      <span role="cell" class="clip quiet">
        {owner === 'unknown' ? 'unknown writer' : owner}
      </span>
      <span role="cell" class="clip" title={nodes.join('\n')}>
        <span class="n">{nodes.length}</span>{' '}
        <span class="quiet">
          {form === 'discovery' ? 'found by discovery' : nodes.slice(0, SHOWN_NODES).join('  ')}
          {nodes.length > SHOWN_NODES && ' …'}
        </span>
      </span>
      <span role="cell" class="number" title={lag && `longest ${formatMs(lag.max)}`}>
        {lag ? formatMs(lag.p50) : <span class="quiet">–</span>}
      </span>
      <span role="cell" class="clip" title={differs}>
        {differs ? <Mark tone="bad" label={differs} /> : <span class="quiet">none known</span>}
      </span>
    </div>
  )
}
