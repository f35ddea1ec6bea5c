import type { LagSample } from '../../serve/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import { histogramOf, placeOf, quantiles, seriesOf } from '../model/lag-series.ts'
import type { Theme } from '../theme.ts'
import { LagChart } from './lag-chart.tsx'

interface LagProps {
  samples: readonly LagSample[]
  sleepMs: number
  theme: Theme
}

/** How long it takes here, over time and spread out, beside the sleep that it replaces. */
export function Lag({ samples, sleepMs, theme }: LagProps) {
  const lag = quantiles(samples.map(({ ms }) => ms))
  const enough = samples.filter(({ ms }) => ms <= sleepMs).length
  return (
    <section aria-labelledby="lag">
      <div class="section-head">
        <h2 id="lag">Sync lag</h2>
        <span class="quiet spread">
          from Kubernetes deciding until every gateway had confirmed · {count(samples.length, 'drain')}
        </span>
      </div>
      {lag ? (
        <div class="charts">
          <figure>
            <figcaption>Over time, log scale</figcaption>
            <LagChart
              series={seriesOf(samples)}
              sleepMs={sleepMs}
              theme={theme}
              label={`Sync lag over time: median ${formatMs(lag.p50)}, p99 ${formatMs(lag.p99)}, longest ${formatMs(lag.max)}`}
            />
          </figure>
          <figure>
            <figcaption>{sleepCaption(enough, samples.length, sleepMs, lag.p50)}</figcaption>
            <Histogram samples={samples} sleepMs={sleepMs} />
          </figure>
        </div>
      ) : (
        <p class="empty">Measured as soon as the first pod has ended with its gateways confirming.</p>
      )}
    </section>
  )
}

function sleepCaption(enough: number, all: number, sleepMs: number, median: number): string {
  const share = Math.floor((enough / all) * 1000) / 10
  const wasted = formatMs(Math.max(0, sleepMs - median))
  return `sleep ${formatMs(sleepMs)} would have been enough for ${share} %, and ${wasted} too long for half of them`
}

function Histogram({ samples, sleepMs }: { samples: readonly LagSample[]; sleepMs: number }) {
  const bars = histogramOf(samples)
  const most = Math.max(...bars.map(bar => bar.samples))
  const words = bars.filter(bar => bar.samples > 0).map(bar => `${bar.samples} up to ${formatMs(bar.upTo)}`)
  return (
    <div
      class="histogram"
      role="img"
      aria-label={`Sync lag of ${samples.length} drains: ${words.join(', ')}`}
    >
      <div class="bars">
        {bars.map(({ upTo, samples: n }) => (
          <div key={upTo} class="column" title={`${n} up to ${formatMs(upTo)}`}>
            <span class="n">{n > 0 ? n : ''}</span>
            <span class="fill" style={{ height: `${n === 0 ? 0 : Math.max(2, (n / most) * 100)}%` }} />
          </div>
        ))}
        <div class="sleep" style={{ left: `${placeOf(sleepMs) * 100}%` }}>
          <span>sleep {formatMs(sleepMs)}</span>
        </div>
      </div>
      <div class="bounds">
        {bars.map(({ upTo }) => (
          <span key={upTo}>{formatMs(upTo)}</span>
        ))}
      </div>
    </div>
  )
}
