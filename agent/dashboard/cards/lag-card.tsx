import { useMemo, useState } from 'preact/hooks'
import type { ArrivalView, LagSample } from '../../page/snapshot.ts'
import { arrivalSamples } from '../model/arrival-rows.ts'
import { count, formatMs } from '../model/format.ts'
import { quantiles, seriesOf } from '../model/lag-series.ts'
import type { Theme } from '../theme.ts'
import { Arrivals } from './arrivals-card.tsx'
import { Choice } from '../parts/choice.tsx'
import { Histogram } from '../parts/histogram.tsx'
import { LagChart } from '../parts/lag-chart.tsx'

interface LagProps {
  samples: readonly LagSample[]
  arrivals: readonly ArrivalView[]
  sleepMs: number
  theme: Theme
}

const DIRECTIONS = ['out', 'in'] as const
type Direction = (typeof DIRECTIONS)[number]

const TELLS: Record<Direction, { readonly spans: string; readonly what: string; readonly none: string }> = {
  out: {
    spans: 'from Kubernetes deciding until every gateway had confirmed',
    what: 'drain',
    none: 'Measured as soon as the first pod has ended with its gateways confirming.'
  },
  in: {
    spans: 'from a pod being Ready until every gateway routes to it',
    what: 'pod',
    none: 'Measured as soon as a pod becomes Ready that a holder lists.'
  }
}

/** The lag of removals or arrivals, over time and as a distribution, next to the sleep that the hook replaces. */
export function Lag({ samples, arrivals, sleepMs, theme }: LagProps) {
  const [direction, setDirection] = useState<Direction>('out')
  const arrived = useMemo(() => arrivalSamples(arrivals), [arrivals])
  const shown = direction === 'out' ? samples : arrived
  const { spans, what, none } = TELLS[direction]
  return (
    <section aria-labelledby="lag">
      <div class="section-head">
        <h2 id="lag">Sync lag</h2>
        <Choice label="On the way" options={DIRECTIONS} value={direction} onChange={setDirection} />
        <span class="quiet spread">
          {spans} · {count(shown.length, what)}
        </span>
      </div>
      {shown.length > 0 ? (
        <Charts samples={shown} sleepMs={direction === 'out' ? sleepMs : undefined} theme={theme} />
      ) : (
        <p class="empty">{none}</p>
      )}
      {direction === 'in' && arrivals.length > 0 && <Arrivals arrivals={arrivals} />}
    </section>
  )
}

interface ChartsProps {
  samples: readonly LagSample[]
  /** Drawn in for removals only: their hook replaces it. */
  sleepMs: number | undefined
  theme: Theme
}

function Charts({ samples, sleepMs, theme }: ChartsProps) {
  const lag = quantiles(samples.map(({ ms }) => ms))
  const series = useMemo(() => seriesOf(samples), [samples])
  if (!lag) return null
  const words = `median ${formatMs(lag.p50)}, p99 ${formatMs(lag.p99)}, longest ${formatMs(lag.max)}`
  return (
    <div class="charts">
      <figure>
        <figcaption>Over time, log scale: {words}</figcaption>
        <LagChart series={series} sleepMs={sleepMs} theme={theme} label={`Sync lag over time: ${words}`} />
      </figure>
      <figure>
        <figcaption>{captionOf(samples, sleepMs, lag.p50)}</figcaption>
        <Histogram samples={samples} sleepMs={sleepMs} />
      </figure>
    </div>
  )
}

function captionOf(samples: readonly LagSample[], sleepMs: number | undefined, median: number): string {
  if (sleepMs === undefined) return 'Spread out'
  const enough = samples.filter(({ ms }) => ms <= sleepMs).length
  const share = Math.floor((enough / samples.length) * 1000) / 10
  const wasted = formatMs(Math.max(0, sleepMs - median))
  return `sleep ${formatMs(sleepMs)} would have been enough for ${share} %, and ${wasted} too long for half of them`
}
