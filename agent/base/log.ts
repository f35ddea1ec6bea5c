import { type DestinationStream, type Logger, pino } from 'pino'
import sonicBoom from 'sonic-boom'
import { CodedError } from './errors.ts'
import type { Clock } from './clock.ts'

export type Log = Logger

/**
 * The log of the whole agent: one JSON object per line on stdout.
 * Each part has a child: `log.child({ part: 'watch' })`. Messages are constant; the facts are in the keys.
 */
export function createLog({ level }: { readonly level: string }, destination?: DestinationStream): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      // pino writes the bindings of a child unchanged, and they need no check: they are names of parts and of gateways.
      log: (facts: object) => censor(facts as Readonly<Record<string, unknown>>)
    },
    serializers: { err: describeError }
  }
  const dropped = (lines: number) => log.warn({ lines }, 'lines of the log could not be written')
  const log: Log = pino(options, destination ?? createLogStream(dropped))
  return log
}

/** How many causes are followed, because a chain of causes may be a loop. */
const CAUSES = 4

/**
 * The fields of an error that are safe to log. HTTP clients add others that hold the Admin API's key (`config.headers`, `request`,
 * `response`).
 */
export function describeError(err: unknown, depth = 0): unknown {
  if (!(err instanceof Error)) return { message: typeof err === 'string' ? err : 'not an Error object' }
  const { code, status } = err as { code?: unknown; status?: unknown }
  return {
    type: err.name,
    message: err.message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof status === 'number' ? { status } : {}),
    // The code already shows what failed, and the stack only leads to the client that made the call.
    ...(err instanceof CodedError ? {} : { stack: err.stack }),
    ...(err.cause === undefined || depth >= CAUSES ? {} : { cause: describeError(err.cause, depth + 1) })
  }
}

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
function createLogStream(onDropped: (lines: number) => void): DestinationStream {
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

/** Names under which a secret could be logged, in lower case. `key` is not among them, because the keys of holders are logged. */
const SECRET_NAMES = new Set(['authorization', 'x-api-key', 'apikey', 'adminkey', 'token', 'password'])
const CENSORED = '<not shown>'
/** How many levels are searched: logged objects are flat, and the headers of a request are the deepest part. */
const DEPTH = 3

type Facts = Readonly<Record<string, unknown>>

/**
 * Returns the facts with a placeholder for each value under the name of a secret. The agent logs no secret, so normally the same
 * object is returned. An Error stays as it is, because its serializer selects the fields. pino's `redact` does the same, but took
 * longer than all decisions about a drain.
 */
function censor(facts: Facts, depth = DEPTH): Record<string, unknown> {
  let censored: Record<string, unknown> | undefined
  for (const [name, value] of Object.entries(facts)) {
    const shown = SECRET_NAMES.has(name.toLowerCase()) ? CENSORED : inner(value, depth)
    if (shown !== value) (censored ??= { ...facts })[name] = shown
  }
  return censored ?? facts
}

function inner(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Error || depth === 1) return value
  if (!Array.isArray(value)) return censor(value as Facts, depth - 1)
  const items: unknown[] = value
  const shown = items.map(item => inner(item, depth - 1))
  return shown.some((item, i) => item !== items[i]) ? shown : items
}

/** At most this number of lines in each span of `EVERY_MS`. */
export const MOST_LINES = 10
export const EVERY_MS = 60_000

export type Rare = ReturnType<typeof createRare>

/** A rate limit for log lines that any caller can cause. */
export function createRare({ now }: Pick<Clock, 'now'>) {
  let began = -Infinity
  let logged = 0
  let leftOut = 0
  return {
    /** `undefined`: leave the line out. Otherwise: log it, with the number of lines that were left out since the last one. */
    next(): number | undefined {
      if (now() >= began + EVERY_MS) {
        began = now()
        logged = 0
      }
      logged++
      if (logged > MOST_LINES) return void leftOut++
      const before = leftOut
      leftOut = 0
      return before
    }
  }
}
