import type { LagSample } from '../../report/snapshot/drain-view.ts'
import { formatMs } from '../model/format.ts'
import { histogramOf, placeOf } from '../model/lag-series.ts'

interface HistogramProps {
  samples: readonly LagSample[]
  sleepMs: number | undefined
}

/** The distribution of the lags, with the sleep as a line. It is made of HTML elements, so that its text is real text. */
export function Histogram({ samples, sleepMs }: HistogramProps) {
  const bars = histogramOf(samples)
  const most = Math.max(...bars.map(bar => bar.samples))
  const words = bars.filter(bar => bar.samples > 0).map(bar => `${bar.samples} up to ${formatMs(bar.upTo)}`)
  return (
    <div class="histogram" role="img" aria-label={`Sync lag of ${samples.length}: ${words.join(', ')}`}>
      <div class="bars">
        {bars.map(({ upTo, samples: n }) => (
          <div key={upTo} class="column" title={`${n} up to ${formatMs(upTo)}`}>
            <span class="n">{n > 0 ? n : ''}</span>
            <span class="fill" style={{ height: `${n === 0 ? 0 : Math.max(2, (n / most) * 100)}%` }} />
          </div>
        ))}
        {sleepMs !== undefined && (
          <div class="sleep" style={{ left: `${placeOf(sleepMs) * 100}%` }}>
            <span>sleep {formatMs(sleepMs)}</span>
          </div>
        )}
      </div>
      <div class="bounds">
        {bars.map(({ upTo }) => (
          <span key={upTo}>{formatMs(upTo)}</span>
        ))}
      </div>
    </div>
  )
}
