import { tellLeadsTo, type LeadsTo } from '../rules/plan/leads-to.ts'
import type { Row } from './compare.ts'

export interface DiffReport {
  readonly differences: readonly Row[]
  /** Places that lead to pods without listing them, or that no barrier covers. They do not change the exit code. */
  readonly hidden: readonly LeadsTo[]
  /** The number of holders that were compared. */
  readonly holders: number
  readonly gateways: readonly string[]
  /** Gateways that could not be read, so their nodes are not known. */
  readonly unread: readonly { readonly gateway: string; readonly why: string }[]
}

const HEAD = { kind: 'KIND', node: 'NODE', where: 'WHERE', holder: 'HOLDER', writer: 'WRITER' } as const
const COLUMNS = ['kind', 'node', 'where', 'holder', 'writer'] as const

/** A table for a terminal, with a summary in its last line. */
export function formatDiff({ differences, hidden, holders, gateways, unread }: DiffReport): string {
  const widths = COLUMNS.map(column => Math.max(...[HEAD, ...differences].map(row => row[column].length)))
  const line = (row: Readonly<Record<(typeof COLUMNS)[number], string>>) =>
    COLUMNS.map((column, i) => row[column].padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  const table = differences.length > 0 ? [line(HEAD), ...differences.map(line), ''] : []
  const places = hidden.flatMap(place => [`hidden: ${tellLeadsTo(place)}`, `  -> ${place.change}`])
  const silent = [...Map.groupBy(unread, ({ why }) => why)].map(
    ([why, same]) => `not read: ${same.map(({ gateway }) => gateway).join(', ')}: ${why}`
  )
  const compared = `${holders} holders at the Admin API and ${gateways.length} gateways`
  const verdict =
    differences.length > 0
      ? `${differences.length} differences in ${compared}`
      : `no difference in ${compared}`
  return `${[...table, ...places, ...silent, verdict].join('\n')}\n`
}

/** Whether Kubernetes, the Admin API and the gateways agree; false if a gateway could not be read. */
export const agrees = ({ differences, unread }: DiffReport): boolean =>
  differences.length === 0 && unread.length === 0
