import { type DestinationStream, type Logger, pino } from 'pino'
import { censor } from './censor.ts'
import { CodedError } from './errors.ts'
import { createLogStream } from './log-stream.ts'

export type Log = Logger

interface LogSettings {
  readonly level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
}

/**
 * The log of the whole agent: one JSON object per line on stdout.
 * Each part has a child: `log.child({ part: 'watch' })`. Messages are constant; the facts are in the keys.
 */
export function createLog(config: LogSettings, destination?: DestinationStream): Log {
  const options = {
    level: config.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      // pino writes the bindings of a child unchanged, and they need no check: they are names of parts and of gateways.
      log: (facts: object) => censor(facts as Readonly<Record<string, unknown>>)
    },
    serializers: { err: describeError }
  }
  const standard = () =>
    createLogStream(lines => log.warn({ lines }, 'lines of the log could not be written'))
  const log = pino(options, destination ?? standard())
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
