/** One row of a table; its keys are the names of the columns, in order. */
export type Row = Readonly<Record<string, string | number>>

/** Returns a table in Markdown, or an empty text if there are no rows. */
export function markdown(rows: readonly Row[]): string {
  const columns = Object.keys(rows[0] ?? {})
  const lines = rows.map(row => columns.map(column => String(row[column] ?? '')))
  const widths = columns.map((column, i) =>
    Math.max(...[column, ...lines.map(l => l[i] ?? '')].map(t => t.length))
  )
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  return [line(columns), line(widths.map(width => '-'.repeat(width))), ...lines.map(line)].join('\n')
}
