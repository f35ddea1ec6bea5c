import { useMemo } from 'preact/hooks'
import type { ArrivalView, Snapshot } from '../../report/snapshot/snapshot.ts'
import { count, formatAge, formatMs } from '../model/format.ts'
import { isBlind } from '../model/headline.ts'
import { arriving, figureNote, lagFigures, type Quantiles } from '../model/lags.ts'
import { holderName, whyBehind } from '../model/upstreams.ts'
import { RANGE_MS, type View } from '../model/view.ts'
import { GRADES } from '../model/words.ts'
import { Name, Section } from '../parts/basics.tsx'

interface NowProps {
  snapshot: Snapshot
  range: View['range']
  /** The agent's clock in ms, cut to whole seconds. */
  now: number
}

/** The three figures of sync lag, the share of proved drains, and the pods that are stuck on their way in. */
export function Now({ snapshot, range, now }: NowProps) {
  const { lags, arrivals, holders, totals } = snapshot
  const figures = useMemo(
    () => lagFigures({ lags, arrivals, holders }, RANGE_MS[range], now),
    [lags, arrivals, holders, range, now]
  )
  const finished = Object.values(totals.graded).reduce((sum, n) => sum + n, 0) + totals.expired
  const [late, ...others] = figures.owners
  const stuck = arriving(snapshot).filter(({ readyAt }) => now - readyAt > STUCK_MS)
  return (
    <>
      <dl class="tiles">
        <LagTile label="Out: until sealed, median" of={figures.out} range={range} />
        <LagTile label="In: Ready until routed, median" of={figures.in} range={range} />
        <Tile
          label="Owner behind now"
          value={late?.behind?.owner ? formatAge(now - late.behind.owner) : isBlind(snapshot) ? '–' : '0 s'}
          note={
            late
              ? `${holderName(late)}: ${whyBehind(late)}${others.length > 0 ? ` · ${count(others.length, 'other')} too` : ''}`
              : `${isBlind(snapshot) ? 'not known: the agent does not see all · ' : ''}none of ${count(holders.length, 'holder')} is known to lack a change`
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
      {stuck.length > 0 && <Arriving pods={stuck} now={now} />}
    </>
  )
}

const Tile = ({ label, value, note }: { label: string; value: string; note: string }) => (
  <div class="tile">
    <dt>{label}</dt>
    <dd>
      <span class="value">{value}</span>
      <span class="quiet">{note}</span>
    </dd>
  </div>
)

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
  const sum = counted.reduce((sum, n) => sum + n, 0)
  return counted.length === 0 ? [] : [`${count(sum, 'request')} after the ack`]
}

/** The share in percent, rounded down: 9,999 of 10,000 must not show as 100 %. */
const share = (part: number, whole: number) => Math.floor((part / whole) * 1000) / 10

/** A pod that is Ready for longer than this and is not routed is stuck, in ms. */
const STUCK_MS = 5000
const MOST_ARRIVING = 3

/** Pods that are Ready and that some gateway does not route to, each with the reason. */
const Arriving = ({ pods, now }: { pods: readonly ArrivalView[]; now: number }) => (
  <Section
    id="arriving"
    title="Ready, and not routed"
    head={<span class="quiet spread">{count(pods.length, 'pod')}</span>}
  >
    <ul class="causes">
      {pods.slice(0, MOST_ARRIVING).map(({ uid, namespace, pod, readyAt, why }) => (
        <li key={uid}>
          <Name before={`${namespace}/`} text={pod} />
          <p>
            for {formatAge(now - readyAt)}: {why}
          </p>
        </li>
      ))}
    </ul>
  </Section>
)
