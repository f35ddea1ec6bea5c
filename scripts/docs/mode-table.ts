import type { ArmDetail } from '../../sandbox/report.ts'

/** The part of a rolling update's result that a cell shows. */
export type Measured = Pick<ArmDetail, 'requests' | 'failed' | 'hookMs' | 'answers'>

/** The measurements of each mode, in the order of the columns. The last one only if it is asked for. */
export const COLUMNS = {
  none: 'no hook',
  observed: 'without the plugin (`observed`)',
  barrier: 'with the plugin (`barrier`)',
  rolled: 'with the plugin, while the gateways roll'
} as const
export type Column = keyof typeof COLUMNS

/** All runs of each cell, by mode. */
export type Cells = ReadonlyMap<string, Readonly<Partial<Record<Column, readonly Measured[]>>>>

const BEGIN = '<!-- modes: written by npm run modes -->'
const END = '<!-- /modes -->'

/** Returns the table as Markdown, with `caption` above it and the counted answers to the hooks below. */
export function modeTable(cells: Cells, caption: string): string {
  const [columns = []] = [...cells.values()].map(by => Object.keys(by) as Column[])
  const row = (texts: readonly string[]) => `| ${texts.join(' | ')} |`
  const rows = [...cells].map(([mode, by]) =>
    row([`\`${mode}\``, ...columns.map(column => cell(by[column] ?? []))])
  )
  const head = ['mode', ...columns.map(column => COLUMNS[column])]
  return [caption, '', row(head), row(head.map(() => '---')), ...rows, '', answersOf(cells)].join('\n')
}

/**
 * Returns the page with the new table.
 * @throws Error if the page has no place for the table
 */
export function withModeTable(page: string, table: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`the page has no ${BEGIN} … ${END}`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${table}\n\n${page.slice(to)}`
}

/** Returns the failed requests of all requests, over all runs; if hooks ran, also the median of the runs' medians, and the longest. */
function cell(runs: readonly Measured[]): string {
  const sum = (of: (run: Measured) => number) => runs.reduce((all, run) => all + of(run), 0)
  const failed = `${sum(run => run.failed)} of ${sum(run => run.requests)}`
  const medians = runs.map(({ hookMs }) => hookMs.p50).toSorted((a, b) => a - b)
  const median = medians[Math.floor(medians.length / 2)] ?? 0
  if (median === 0) return failed
  return `${failed}; ${text(median)}, ${text(Math.max(...runs.map(({ hookMs }) => hookMs.max)))}`
}

const text = (ms: number): string => (ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms)} ms`)

/** Returns a sentence that counts the answers to all hooks, without the plugin and with it. */
function answersOf(cells: Cells): string {
  const of = (column: Column): string => {
    const counts = new Map<string, number>()
    for (const by of cells.values())
      for (const { answers } of by[column] ?? [])
        for (const [answer, count] of Object.entries(answers))
          counts.set(answer, (counts.get(answer) ?? 0) + count)
    return [...counts].map(([answer, count]) => `${count} × ${answer}`).join(', ') || 'nothing'
  }
  return `Hooks were answered, without the plugin: ${of('observed')}; with it: ${of('barrier')}.`
}
