import { useMemo } from 'preact/hooks'
import type { ArrivalView, HolderView } from '../../report/snapshot/snapshot.ts'
import { count, formatAge, formatMs } from '../model/format.ts'
import type { Lane } from '../model/lanes.ts'
import {
  differenceOf,
  HOLDER_FILTERS,
  holderName,
  holderRows,
  lastIn,
  lastOut,
  toneOf,
  type Clock
} from '../model/upstreams.ts'
import type { ViewProps } from '../model/view.ts'
import { Choice, Mark, Name, Search, Section } from '../parts/basics.tsx'
import { Rows } from '../parts/rows.tsx'

interface HoldersProps extends ViewProps {
  holders: readonly HolderView[]
  /** Drains that are over. */
  lanes: readonly Lane[]
  arrivals: readonly ArrivalView[]
  now: number
  isBlind: boolean
}

/** Every holder: how far its owner and the gateways are behind Kubernetes, and which nodes differ. */
export function Holders({ holders, lanes, arrivals, now, isBlind, view, onView }: HoldersProps) {
  const { holders: filter, seek } = view
  const rows = useMemo(() => holderRows(holders, filter, seek), [holders, filter, seek])
  const clocks = useMemo(() => [lastOut(lanes), lastIn(arrivals)], [lanes, arrivals])
  const open = (key: string) => {
    onView({ find: key, show: 'all' })
    document.getElementById('drains')?.scrollIntoView()
  }
  return (
    <Section
      id="holders"
      title="Holders"
      head={
        <>
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
        </>
      }
    >
      {rows.length === 0 ? (
        <p class="empty">
          {holders.length === 0
            ? 'No holder has been read.'
            : filter === 'all' || seek !== ''
              ? 'None of that kind.'
              : isBlind
                ? 'None is known to differ, but the agent does not see all.'
                : 'All are as Kubernetes and every gateway have them.'}
        </p>
      ) : (
        <Rows
          items={rows}
          label="Holders"
          keyOf={({ key }) => key}
          isStop={() => true}
          head={
            <div role="row" class="holder-row head" aria-rowindex={1}>
              {HEADS.map(([name, kind]) => (
                <span key={name} role="columnheader" class={kind}>
                  {name}
                </span>
              ))}
            </div>
          }
          row={(holder, tabIndex) => (
            <HolderRow
              holder={holder}
              clocks={clocks.map(of => of.get(holder.key))}
              now={now}
              tabIndex={tabIndex}
              onOpen={() => open(holder.key)}
            />
          )}
        />
      )}
    </Section>
  )
}

const HEADS = [
  ['Holder', 'holder'],
  ['Owner', 'owner'],
  ['Nodes', 'number lag'],
  ['Out', 'number lag'],
  ['In', 'number lag'],
  ['Behind', 'number lag'],
  ['Difference', 'differs']
] as const

interface HolderRowProps {
  holder: HolderView
  clocks: readonly (Clock | undefined)[]
  now: number
  tabIndex: 0 | -1
  onOpen: () => void
}

function HolderRow({ holder, clocks, now, tabIndex, onOpen }: HolderRowProps) {
  const { key, name, service, owner, form, nodes, behind, revision } = holder
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
      {clocks.map((of, i) => (
        <Lag key={i} of={of} />
      ))}
      <span role="cell" class="number lag">
        {behind ? formatAge(now - behind.since) : <span class="quiet">–</span>}
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
