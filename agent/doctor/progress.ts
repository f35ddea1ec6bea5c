/** Shows the present step of a long command on standard error, so that standard output has only the result. */
interface Progress {
  say(step: string): void
  /** Removes the line from a terminal. A second call does nothing. */
  end(): void
}

/** On a terminal it overwrites one line. Elsewhere it writes one line for each step if `wanted`, otherwise nothing. */
export function createProgress(
  wanted: boolean,
  stream: Pick<NodeJS.WriteStream, 'write' | 'isTTY' | 'columns'> = process.stderr
): Progress {
  const isTerminal = stream.isTTY
  let shown = ''
  return {
    say(step) {
      if (step === shown) return
      shown = step
      if (isTerminal) stream.write(`\r\u001b[K${`${step} …`.slice(0, stream.columns - 1)}`)
      else if (wanted) stream.write(`${step} …\n`)
    },
    end() {
      if (isTerminal && shown !== '') stream.write('\r\u001b[K')
      shown = ''
    }
  }
}
