/** One line of a table: its columns are the names, in order. */
export type Row = Readonly<Record<string, string | number>>

/** A table in Markdown; nothing for no rows. */
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
