import type { DrainView, LagSample } from '../../report/snapshot/drain-view.ts'
import type { Lane } from './lanes.ts'
import { waitOf } from './waits.ts'

type Cell = string | number | null

/** A spreadsheet runs a cell that begins with one of these characters as a formula, and other users choose the names in cells. */
const FORMULA = /^[=+\-@\t\r]/

function cellOf(value: Cell): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const safe = FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Lines of RFC 4180. */
const csvOf = (rows: readonly (readonly Cell[])[]): string =>
  rows.map(row => `${row.map(cellOf).join(',')}\r\n`).join('')

const isoOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
const rounded = (ms: number | null | undefined): number | null =>
  ms == null ? null : Math.round(ms * 10) / 10

const MOMENTS = [
  'decidedAt',
  'seenAt',
  'hookAt',
  'sliceAt',
  'acceptedAt',
  'sealedAt',
  'confirmedAt',
  'idleAt',
  'ackAt',
  'goneAt'
] as const satisfies readonly (keyof DrainView['moments'])[]

/** Drains as CSV: times as ISO 8601 in UTC, durations in ms. */
export const drainsCsv = (lanes: readonly Lane[]): string =>
  csvOf([
    [
      'namespace',
      'pod',
      'uid',
      'owner',
      'state',
      'evidence',
      'sync_lag_ms',
      ...MOMENTS,
      'deadline',
      'waits_for',
      'why',
      'holders'
    ],
    ...lanes.map(lane => {
      const { drain, standing, lagMs } = lane
      return [
        drain.namespace,
        drain.pod,
        drain.uid,
        drain.owner,
        standing,
        drain.verdict?.grade ?? null,
        rounded(lagMs),
        ...MOMENTS.map(name => isoOf(drain.moments[name])),
        isoOf(drain.deadline),
        waitOf(lane),
        drain.why,
        drain.holders.map(({ key }) => key).join(' ')
      ]
    })
  ])

/** Samples of the lag as CSV, in the form of `drainsCsv`. */
export const lagsCsv = (samples: readonly LagSample[]): string =>
  csvOf([
    ['at', 'sync_lag_ms', 'idle_lag_ms', 'evidence'],
    ...samples.map(({ at, ms, idleMs, grade }) => [isoOf(at), rounded(ms), rounded(idleMs), grade])
  ])
