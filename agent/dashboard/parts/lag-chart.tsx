import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import { clock, formatMs } from '../model/format.ts'
import type { Series } from '../model/lag-series.ts'
import type { Theme } from '../theme.ts'

interface LagChartProps {
  series: Series
  sleepMs: number | undefined
  theme: Theme
  label: string
}

const HEIGHT = 210
/** The least time that the chart covers, in seconds. */
const SHORTEST = 60

/** p50, p99 and longest as lines, the sleep as a dashed one. Drawn on a canvas; `label` describes it. */
export function LagChart({ series, sleepMs, theme, label }: LagChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<UPlot>(undefined)
  const data = useRef<UPlot.AlignedData>([[]])
  data.current = [
    ...series.map(column => [...column]),
    ...(sleepMs === undefined ? [] : [series[0].map(() => sleepMs)])
  ] as unknown as UPlot.AlignedData

  useEffect(() => {
    const at = box.current
    if (!at) return undefined
    const made = new UPlot(options(at, sleepMs !== undefined), data.current, at)
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
  }, [series, sleepMs, theme])
  return <div class="chart" ref={box} role="img" aria-label={label} />
}

/** While no pointer is on the chart its legend shows the newest point. */
const tellNewest = (chart: UPlot) => chart.setLegend({ idx: chart.data[0].length - 1 })

/** The range of the data, or `SHORTEST`: uPlot would stretch a single point to a day. */
function spanOf(times: ArrayLike<number>): [number, number] {
  const [from = 0, to = 0] = [times[0], times[times.length - 1]]
  return to - from < SHORTEST ? [to - SHORTEST, to + 1] : [from, to]
}

/** Lines at 1 ms, 10 ms, 100 ms, …: lines in between would be too dense. */
function decades(low: number, high: number): number[] {
  const found: number[] = []
  for (let at = low; at <= high * 1.01; at *= 10) found.push(at)
  return found
}

function options(at: HTMLElement, withSleep: boolean): UPlot.Options {
  const colours = getComputedStyle(at)
  const colour = (name: string) => colours.getPropertyValue(`--${name}`).trim()
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
        range: chart => spanOf(chart.data[0])
      },
      y: {
        distr: 3,
        range: (_, low, high) => [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high))]
      }
    },
    axes: [
      { ...axis, font, space: 70, values: (_, ticks) => ticks.map(at => clock(at * 1000)) },
      {
        ...axis,
        font,
        size: 56,
        splits: (_, __, low, high) => decades(low, high),
        values: (_, ticks) => ticks.map(ms => (ms === null ? '' : formatMs(ms)))
      }
    ],
    series: [
      { value: (_, at: number | null) => (at === null ? '–' : clock(at * 1000)), label: 'time' },
      { label: 'p50', stroke: colour('accent'), width: 2, points: { size: 5 }, value },
      { label: 'p99', stroke: colour('busy'), width: 1.5, points: { size: 4 }, value },
      { label: 'longest', stroke: colour('bad'), width: 1, dash: [2, 3], points: { size: 4 }, value },
      ...(withSleep
        ? [
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
