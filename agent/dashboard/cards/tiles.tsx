import { useMemo } from 'preact/hooks'
import { longLivedWords, together } from '../../rules/drain/long-lived.ts'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import { quantiles } from '../model/lag-series.ts'
import { GRADES } from '../model/words.ts'
import { Tile } from '../parts/tile.tsx'

/** The most important numbers of the page. */
export function Tiles({ snapshot }: { snapshot: Snapshot }) {
  const { drains, lags, totals, agent } = snapshot
  const lag = useMemo(() => quantiles(lags.map(({ ms }) => ms)), [lags])
  const ending = drains.filter(({ phase }) => phase === 'draining').length
  const held = drains.reduce((sum, drain) => sum + drain.hooks, 0)
  const left = longLivedWords(together(drains.flatMap(({ longLived }) => longLived ?? [])))
  const finished = Object.values(totals.graded).reduce((sum, n) => sum + n, 0) + totals.expired
  const idle = useMemo(() => quantiles(lags.flatMap(({ idleMs }) => idleMs ?? [])), [lags])
  return (
    <dl class="tiles">
      <Tile
        label="On the way out"
        value={ending.toLocaleString('en-US')}
        note={[`${count(held, 'hook')} held`, left, `${count(totals.drains, 'drain')} of this agent`]
          .filter(words => words !== '')
          .join(' · ')}
      />
      <Tile
        label="Sync lag, median"
        value={lag ? formatMs(lag.p50) : '–'}
        note={
          lag
            ? [
                `p99 ${formatMs(lag.p99)}`,
                `longest ${formatMs(lag.max)}`,
                ...(idle ? [`last request ended ${formatMs(idle.p50)}`] : [])
              ].join(' · ')
            : 'nothing measured yet'
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
      <Tile
        label={`Saved against sleep ${formatMs(agent.sleepMs)}`}
        value={totals.hooks === 0 ? '–' : formatMs(totals.savedMs)}
        note={
          totals.hooks === 0
            ? 'no hook was answered yet'
            : `over ${count(totals.hooks, 'hook')} of this agent`
        }
      />
    </dl>
  )
}

/** How many drains ended with each weaker grade of evidence, or without a proof. */
const weaker = ({ graded, expired }: Snapshot['totals']): string[] => [
  ...(['observed', 'accepted', 'timer'] as const).flatMap(grade =>
    graded[grade] > 0 ? [`${graded[grade]} ${GRADES[grade].label}`] : []
  ),
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
