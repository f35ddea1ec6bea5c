import { useMemo } from 'preact/hooks'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import { figureNote, lagFigures } from '../model/lag-figures.ts'
import type { Quantiles } from '../model/lag-series.ts'
import { RANGE_MS, type View } from '../model/view.ts'
import { formatAge, holderName, whyBehind } from '../model/why-behind.ts'
import { GRADES } from '../model/words.ts'
import { Tile } from '../parts/tile.tsx'

interface TilesProps {
  snapshot: Snapshot
  range: View['range']
  /** The agent's clock in ms, cut to whole seconds. */
  now: number
}

/** The three figures of sync lag, and the share of proved drains. */
export function Tiles({ snapshot, range, now }: TilesProps) {
  const { lags, arrivals, holders, totals } = snapshot
  const figures = useMemo(
    () => lagFigures({ lags, arrivals, holders }, RANGE_MS[range], now),
    [lags, arrivals, holders, range, now]
  )
  const finished = Object.values(totals.graded).reduce((sum, n) => sum + n, 0) + totals.expired
  const [late, ...others] = figures.owners
  return (
    <dl class="tiles">
      <LagTile label="Out: until sealed, median" of={figures.out} range={range} />
      <LagTile label="In: Ready until routed, median" of={figures.in} range={range} />
      <Tile
        label="Owner behind now"
        value={late?.behind ? formatAge(Math.max(0, now - (late.behind.owner ?? now))) : '0 s'}
        note={
          late
            ? `${holderName(late)}: ${whyBehind(late)}${others.length > 0 ? ` · ${count(others.length, 'other')} too` : ''}`
            : `none of ${count(holders.length, 'holder')} lacks a change`
        }
      />
      <Tile
        label="Proved"
        value={finished === 0 ? '–' : `${share(totals.graded.barrier, finished)} %`}
        note={
          finished === 0
            ? 'no drain has ended yet'
            : [
                `${totals.graded.barrier} of ${count(finished, 'drain')} of this agent, by every gateway`,
                ...weaker(totals),
                ...afterAck(snapshot)
              ].join(' · ')
        }
      />
    </dl>
  )
}

const LagTile = ({ label, of, range }: { label: string; of: Quantiles | undefined; range: string }) => (
  <Tile
    label={label}
    value={of ? formatMs(of.p50) : '–'}
    note={of ? figureNote(of, range) : `no pod in ${range}`}
  />
)

/** How many drains were only observed, or ended without a proof. */
const weaker = ({ graded, expired }: Snapshot['totals']): string[] => [
  ...(graded.observed > 0 ? [`${graded.observed} ${GRADES.observed.label}`] : []),
  ...(expired > 0 ? [`${expired} not proved`] : [])
]

/** How many requests the shown drains got after the ack; empty if no plugin counts them. */
function afterAck({ drains, past }: Snapshot): string[] {
  const counted = [...drains, ...past].flatMap(drain => drain.afterAck ?? [])
  if (counted.length === 0) return []
  return [
    `${count(
      counted.reduce((sum, n) => sum + n, 0),
      'request'
    )} after the ack`
  ]
}

/** The share in percent, rounded down: 9,999 of 10,000 must not show as 100 %. */
const share = (part: number, whole: number) => Math.floor((part / whole) * 1000) / 10
