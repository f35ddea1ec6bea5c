/** The most lines that one suite may show at the end: CI keeps only the last 4,000 characters of a log. */
const MOST_LINES = 12
/** The longest such line, in characters. */
const MOST_CHARACTERS = 240
/** If a suite ended without naming a failure, as after a crash, this many of its last lines are shown instead. */
const LAST_LINES = 8

/** How each program names a failure: mocha (`test/reporter.mjs`), the model and the faults, the mutants, Go, and c8. */
const FAILURE = /^(failed: |FAILED |run \d+ FAILED: |MISSED |\s*--- FAIL: |ERROR: Coverage )/

/**
 * Returns the lines of a suite's output that name its failures, for the end of a log.
 * @param output the whole output of the step that failed
 */
export function failuresOf(output: string): string[] {
  const lines = output.split('\n').filter(line => line.trim() !== '')
  const named = [...new Set(lines.filter(line => FAILURE.test(line)))]
  const shown = named.length > 0 ? named.slice(0, MOST_LINES) : lines.slice(-LAST_LINES)
  const more = named.length - MOST_LINES
  return [
    ...shown.map(line => (line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS - 1)}…` : line)),
    ...(more > 0 ? [`and ${more} more`] : [])
  ]
}

/** The lines `N passed, N failed` of an output. */
export const closingLinesOf = (output: string): string[] =>
  output.match(/^(?:\w+: )?\d+ passed, \d+ failed.*$/gm) ?? []
