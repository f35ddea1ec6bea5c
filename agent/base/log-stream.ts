import type { DestinationStream } from 'pino'
import sonicBoom from 'sonic-boom'

/** The maximum of log bytes that wait for a full disk or a slow reader. Further lines are dropped and counted. */
const WAITING = 1024 * 1024

/**
 * Standard output that the agent never waits for. Another thread writes the lines, so a pipe without a reader blocks nothing. A
 * line that cannot be written (ENOSPC) is retried with the next one.
 *
 * Callers get `write` only. `pino.destination` is not used: without a listener for errors it ends the process when a write fails.
 * With such a listener, it retries the last lines for ever (`flushSync` of sonic-boom, called for `fatal` and at exit).
 *
 * @param onDropped called once lines can be written again, with the number of dropped lines
 */
export function createLogStream(onDropped: (lines: number) => void): DestinationStream {
  // If `minLength` is 0, `flush` does nothing.
  const stream = new sonicBoom.SonicBoom({ fd: 1, sync: false, minLength: 1, maxLength: WAITING })
  let dropped = 0
  stream.on('error', () => {})
  stream.on('drop', () => {
    dropped += 1
    // A dropped line starts no write by itself, so without this call the log would stay silent for ever.
    stream.flush()
  })
  stream.on('drain', () => {
    const lines = dropped
    dropped = 0
    if (lines > 0) onDropped(lines)
  })
  return { write: line => void stream.write(line) }
}
