import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import { clock, formatMs, moment } from '../model/format.ts'
import type { Series } from '../model/lag-series.ts'
import type { Theme } from '../theme.ts'

interface LagChartProps {
  series: Series
  /** The chart covers this many ms, and ends at `now`. */
  rangeMs: number
  now: number
  sleepMs: number | undefined
  theme: Theme
  label: string
}

const HEIGHT = 210

/** A chart of p50, p99 and the longest lag, with dashed lines for the median of idle and the sleep. `label` describes the canvas. */
export function LagChart({ series, rangeMs, now, sleepMs, theme, label }: LagChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<UPlot>(undefined)
  const data = useRef<UPlot.AlignedData>([[]])
  const span = useRef<[number, number]>([0, 1])
  span.current = [(now - rangeMs) / 1000, now / 1000]
  data.current = [
    ...series.slice(0, 4).map(column => [...column]),
    ...(sleepMs === undefined ? [] : [[...series[4]], series[0].map(() => sleepMs)])
  ] as unknown as UPlot.AlignedData

  useEffect(() => {
    const at = box.current
    if (!at) return undefined
    const made = new UPlot(
      options(at, sleepMs !== undefined, () => span.current),
      data.current,
      at
    )
    chart.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: at.clientWidth, height: HEIGHT }))
    resized.observe(at)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [theme, sleepMs === undefined])
  useEffect(() => {
    chart.current?.setData(data.current)
    if (chart.current) tellNewest(chart.current)
  }, [series, sleepMs, theme, now, rangeMs])
  return <div class="chart" ref={box} role="img" aria-label={label} />
}

/** Shows the newest point in the legend. Called while no pointer is on the chart. */
function tellNewest(chart: UPlot): void {
  const newest = chart.data[1]?.findLastIndex(value => value !== null) ?? -1
  chart.setLegend({ idx: newest === -1 ? chart.data[0].length - 1 : newest })
}

/** Draws only points with a gap on both sides, because the line shows all other points. */
const lonely = (size: number): UPlot.Series.Points => ({
  size,
  show: true,
  filter: ({ data }, series) => {
    const values = data[series] ?? []
    return [...values.keys()].filter(i => values[i] != null && values[i - 1] == null && values[i + 1] == null)
  }
})

/** The grid lines at 1 ms, 10 ms, 100 ms, …: lines in between would be too dense. */
function decades(low: number, high: number): number[] {
  const found: number[] = []
  for (let at = low; at <= high * 1.01; at *= 10) found.push(at)
  return found
}

function options(at: HTMLElement, withSleep: boolean, span: () => [number, number]): UPlot.Options {
  /** A canvas needs the colour itself, and not its name. */
  const colour = (name: string) => {
    at.style.color = `var(--${name})`
    const { color } = getComputedStyle(at)
    at.style.color = ''
    return color
  }
  const axis = { stroke: colour('quiet'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } }
  const font = '11px system-ui, sans-serif'
  const value = (_: UPlot, ms: number | null) => (ms === null ? '–' : formatMs(ms))
  return {
    width: at.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    hooks: { setCursor: [chart => chart.cursor.idx == null && tellNewest(chart)] },
    scales: {
      x: {
        time: true,
        range: span
      },
      y: {
        distr: 3,
        // If there is no sample, the axis goes from 1 ms to 1 s.
        range: (_, low, high) =>
          low === null ? [1, 1000] : [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high))]
      }
    },
    axes: [
      { ...axis, font, space: 60, values: (_, ticks) => ticks.map(at => clock(at * 1000).slice(0, 5)) },
      {
        ...axis,
        font,
        size: 56,
        splits: (_, __, low, high) => decades(low, high),
        values: (_, ticks) => ticks.map(ms => (ms === null ? '' : formatMs(ms)))
      }
    ],
    series: [
      { value: (_, at: number | null) => (at === null ? '–' : moment(at * 1000, Date.now())), label: 'time' },
      { label: 'p50', stroke: colour('accent'), width: 2, points: lonely(5), value },
      { label: 'p99', stroke: colour('busy'), width: 1.5, points: lonely(4), value },
      { label: 'longest', stroke: colour('bad'), width: 1, dash: [2, 3], points: lonely(4), value },
      ...(withSleep
        ? [
            {
              label: 'idle p50',
              stroke: colour('good'),
              width: 1.5,
              dash: [4, 3],
              points: lonely(4),
              value
            },
            {
              label: 'sleep',
              stroke: colour('quiet'),
              width: 1.5,
              dash: [8, 6],
              points: { show: false },
              value
            }
          ]
        : [])
    ]
  }
}
