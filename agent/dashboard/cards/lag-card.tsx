import { useEffect, useMemo, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import type { ArrivalView } from '../../report/snapshot/snapshot.ts'
import { DARK, useMedia } from '../agent.ts'
import { clock, count, formatMs, moment } from '../model/format.ts'
import { arrivalSamples, quantiles, seriesOf, within, type Sample } from '../model/lags.ts'
import { RANGES, RANGE_MS, WAYS, type View, type ViewProps } from '../model/view.ts'
import { Choice, Section } from '../parts/basics.tsx'

interface LagProps extends ViewProps {
  samples: readonly Sample[]
  arrivals: readonly ArrivalView[]
  sleepMs: number
  /** The agent's clock, in ms. */
  now: number
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
export function Lag({ samples, arrivals, sleepMs, now, view, onView }: LagProps) {
  const { way, range } = view
  const all = useMemo(() => (way === 'out' ? samples : arrivalSamples(arrivals)), [way, samples, arrivals])
  const rangeMs = RANGE_MS[range]
  const shown = useMemo(() => within(all, rangeMs, now), [all, rangeMs, now])
  // The axis begins at the first sample: a chart of an hour with two points at its edge shows nothing.
  const oldest = shown.reduce((least, { at }) => Math.min(least, at), now)
  const drawnMs = Math.min(rangeMs, Math.max(60_000, 1.05 * (now - oldest)))
  const { spans, what, none } = TELLS[way]
  return (
    <Section
      id="lag"
      title="Sync lag"
      head={
        <>
          <Choice label="On the way" options={WAYS} value={way} onChange={to => onView({ way: to })} />
          <Choice label="Last" options={RANGES} value={range} onChange={to => onView({ range: to })} />
          <span class="quiet spread">
            {spans} · {count(shown.length, what)}
          </span>
        </>
      }
    >
      {shown.length > 0 ? (
        <Chart samples={shown} rangeMs={drawnMs} now={now} sleepMs={way === 'out' ? sleepMs : undefined} />
      ) : (
        <p class="empty">
          {all.length === 0 ? none : `None in the last ${range}. ${count(all.length, what)} before.`}
        </p>
      )}
    </Section>
  )
}

interface ChartProps {
  samples: readonly Sample[]
  /** The chart covers this many ms, and ends at `now`. */
  rangeMs: number
  now: number
  /** The sleep that the hook replaces; `undefined` for arrivals, which have no hook. */
  sleepMs: number | undefined
}

const HEIGHT = 180

/** p50, p99 and the longest lag over time, with a dashed line for the sleep, and what they mean for it in words. */
function Chart({ samples, rangeMs, now, sleepMs }: ChartProps) {
  const isDark = useMedia(DARK)
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<UPlot>(undefined)
  const span = useRef<[number, number]>([0, 1])
  span.current = [(now - rangeMs) / 1000, now / 1000]
  const data = useMemo(() => {
    const series = seriesOf(samples, rangeMs, now)
    return [...series, ...(sleepMs === undefined ? [] : [series[0].map(() => sleepMs)])] as UPlot.AlignedData
  }, [samples, rangeMs, now, sleepMs])
  useEffect(() => {
    const at = box.current
    if (!at) return undefined
    const made = new UPlot(
      options(at, sleepMs !== undefined, () => span.current),
      data,
      at
    )
    chart.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: at.clientWidth, height: HEIGHT }))
    resized.observe(at)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [isDark, sleepMs === undefined])
  useEffect(() => {
    chart.current?.setData(data)
    if (chart.current) tellNewest(chart.current)
  }, [data, isDark])
  const words = wordsOf(samples, sleepMs)
  return (
    <figure>
      <figcaption>{words}</figcaption>
      <div class="chart" ref={box} role="img" aria-label={`Sync lag over time: ${words}`} />
    </figure>
  )
}

function wordsOf(samples: readonly Sample[], sleepMs: number | undefined): string {
  const lag = quantiles(samples.map(({ ms }) => ms))
  if (!lag) return ''
  const words = `Over time, log scale: median ${formatMs(lag.p50)}, p99 ${formatMs(lag.p99)}, longest ${formatMs(lag.max)}`
  if (sleepMs === undefined) return words
  const enough = samples.filter(({ ms }) => ms <= sleepMs).length
  const share = Math.floor((enough / samples.length) * 1000) / 10
  const wasted = formatMs(Math.max(0, sleepMs - lag.p50))
  return `${words}. Sleep ${formatMs(sleepMs)} would have been enough for ${share} %, and ${wasted} too long for half of them`
}

/** Shows the newest point in the legend. Called while no pointer is on the chart. */
function tellNewest(chart: UPlot): void {
  const newest = chart.data[1]?.findLastIndex(value => value !== null) ?? -1
  chart.setLegend({ idx: newest === -1 ? chart.data[0].length - 1 : newest })
}

function options(at: HTMLElement, withSleep: boolean, span: () => [number, number]): UPlot.Options {
  /** A canvas needs the colour itself, and not its name. */
  const colour = (name: string) => {
    at.style.color = `var(--${name})`
    const { color } = getComputedStyle(at)
    at.style.color = ''
    return color
  }
  const line = { stroke: colour('line'), width: 1 }
  const font = '11px system-ui, sans-serif'
  const axis = { font, stroke: colour('quiet'), grid: line, ticks: { show: false } }
  const sleep = { label: 'sleep', stroke: colour('quiet'), dash: [8, 6], points: { show: false } }
  const value = (_: UPlot, ms: number | null) => (ms === null ? '–' : formatMs(ms))
  return {
    width: at.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    hooks: { setCursor: [chart => chart.cursor.idx == null && tellNewest(chart)] },
    scales: {
      x: { range: span },
      y: {
        distr: 3,
        // If there is no sample, the axis goes from 1 ms to 1 s.
        range: (_, low, high) =>
          low === null ? [1, 1000] : [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high))]
      }
    },
    axes: [
      { ...axis, size: 30, space: 70, values: (_, ticks) => ticks.map(at => clock(at * 1000)) },
      { ...axis, size: 56, values: (_, ticks) => ticks.map(ms => (ms === null ? '' : formatMs(ms))) }
    ],
    series: [
      { value: (_, at: number | null) => (at === null ? '–' : moment(at * 1000, Date.now())), label: 'time' },
      { label: 'p50', stroke: colour('accent'), width: 2, value },
      { label: 'p99', stroke: colour('busy'), width: 1.5, value },
      { label: 'longest', stroke: colour('bad'), width: 1, dash: [2, 3], value },
      ...(withSleep ? [{ ...sleep, value }] : [])
    ]
  }
}
