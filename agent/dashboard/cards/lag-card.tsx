import { useMemo } from 'preact/hooks'
import type { ArrivalView } from '../../report/snapshot/snapshot.ts'
import type { LagSample } from '../../report/snapshot/drain-view.ts'
import { arrivalSamples } from '../model/arrival-rows.ts'
import { lagsCsv } from '../model/csv.ts'
import { count, formatMs } from '../model/format.ts'
import { quantiles, seriesOf, within } from '../model/lag-series.ts'
import { RANGES, RANGE_MS, WAYS, type View, type ViewProps } from '../model/view.ts'
import type { Theme } from '../theme.ts'
import { Arrivals } from './arrivals-card.tsx'
import { Choice } from '../parts/choice.tsx'
import { Term } from '../parts/term.tsx'
import { Download } from '../parts/download.tsx'
import { Histogram } from '../parts/histogram.tsx'
import { LagChart } from '../parts/lag-chart.tsx'

interface LagProps extends ViewProps {
  samples: readonly LagSample[]
  arrivals: readonly ArrivalView[]
  sleepMs: number
  /** The agent's clock, in ms. */
  now: number
  theme: Theme
}

const TELLS: Record<View['way'], { readonly spans: string; readonly what: string; readonly none: string }> = {
  out: {
    spans: 'from the decision of Kubernetes until every gateway had sealed the pod',
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
export function Lag({ samples, arrivals, sleepMs, now, theme, view, onView }: LagProps) {
  const { way, range } = view
  const arrived = useMemo(() => arrivalSamples(arrivals), [arrivals])
  const all = way === 'out' ? samples : arrived
  const rangeMs = RANGE_MS[range]
  const shown = useMemo(() => within(all, rangeMs, now), [all, rangeMs, now])
  // The axis begins at the first sample: a chart of an hour with two points at its edge shows nothing.
  const oldest = shown.reduce((least, { at }) => Math.min(least, at), now)
  const drawnMs = Math.min(rangeMs, Math.max(60_000, 1.05 * (now - oldest)))
  const { spans, what, none } = TELLS[way]
  return (
    <section aria-labelledby="lag">
      <div class="section-head">
        <h2 id="lag">
          <Term of="sync lag">Sync lag</Term>
        </h2>
        <Choice label="On the way" options={WAYS} value={way} onChange={to => onView({ way: to })} />
        <Choice label="Last" options={RANGES} value={range} onChange={to => onView({ range: to })} />
        <span class="quiet spread">
          {spans} · {count(shown.length, what)}
        </span>
        <Download name="lags" disabled={shown.length === 0} csv={() => lagsCsv(shown)} />
      </div>
      {shown.length > 0 ? (
        <Charts
          samples={shown}
          rangeMs={drawnMs}
          now={now}
          sleepMs={way === 'out' ? sleepMs : undefined}
          theme={theme}
        />
      ) : (
        <p class="empty">
          {all.length === 0 ? none : `None in the last ${range}. ${count(all.length, what)} before.`}
        </p>
      )}
      {way === 'in' && arrivals.length > 0 && <Arrivals arrivals={arrivals} now={now} />}
    </section>
  )
}

interface ChartsProps {
  samples: readonly LagSample[]
  rangeMs: number
  now: number
  /** The sleep that the hook replaces; `undefined` for arrivals, which have no hook. */
  sleepMs: number | undefined
  theme: Theme
}

function Charts({ samples, rangeMs, now, sleepMs, theme }: ChartsProps) {
  const lag = quantiles(samples.map(({ ms }) => ms))
  const series = useMemo(() => seriesOf(samples, rangeMs, now), [samples, rangeMs, now])
  if (!lag) return null
  const words = `median ${formatMs(lag.p50)}, p99 ${formatMs(lag.p99)}, longest ${formatMs(lag.max)}`
  return (
    <div class="charts">
      <figure>
        <figcaption>Over time, log scale: {words}</figcaption>
        <LagChart
          series={series}
          rangeMs={rangeMs}
          now={now}
          sleepMs={sleepMs}
          theme={theme}
          label={`Sync lag over time: ${words}`}
        />
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
