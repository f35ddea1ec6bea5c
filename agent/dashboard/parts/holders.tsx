import { useMemo, useState } from 'preact/hooks'
import type { HolderView } from '../../serve/snapshot.ts'
import { count } from '../model/format.ts'
import { HOLDER_FILTERS, holderRows, type HolderFilter } from '../model/holder-rows.ts'
import { Choice } from './choice.tsx'
import { Mark } from './mark.tsx'
import { Virtual } from './virtual.tsx'

const ROW_HEIGHT = 30
const ROWS = 12
const SHOWN_NODES = 4

/** Every APISIX object that lists nodes, and where it differs from the EndpointSlices. */
export function Holders({ holders }: { holders: readonly HolderView[] }) {
  const [filter, setFilter] = useState<HolderFilter>('all')
  const [query, setQuery] = useState('')
  const rows = useMemo(() => holderRows(holders, filter, query), [holders, filter, query])
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
              <span role="columnheader">Difference</span>
            </div>
          }
          row={holder => <HolderRow holder={holder} />}
        />
      )}
    </section>
  )
}

function HolderRow({ holder }: { holder: HolderView }) {
  const { key, name, owner, form, nodes, ghosts, missing } = holder
  const differs = [
    ...(ghosts.length > 0
      ? [`${count(ghosts.length, 'ghost')}: ${ghosts.map(({ node }) => node).join(' ')}`]
      : []),
    ...(missing.length > 0 ? [`missing: ${missing.map(({ node }) => node).join(' ')}`] : [])
  ].join(' · ')
  return (
    <div class="holder-row" role="presentation">
      <span role="cell" class="clip" title={key}>
        {key} {name && <span class="quiet">{name}</span>}
      </span>
      <span role="cell" class="clip quiet">
        {owner === 'nobody-known' ? 'nobody known' : owner}
      </span>
      <span role="cell" class="clip" title={nodes.join('\n')}>
        <span class="n">{nodes.length}</span>{' '}
        <span class="quiet">
          {form === 'discovery' ? 'found by discovery' : nodes.slice(0, SHOWN_NODES).join('  ')}
          {nodes.length > SHOWN_NODES && ' …'}
        </span>
      </span>
      <span role="cell" class="clip" title={differs}>
        {differs ? <Mark tone="bad" label={differs} /> : <span class="quiet">none known</span>}
      </span>
    </div>
  )
}
