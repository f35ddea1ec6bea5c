import { stayAwake, type Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'

/** A part runs until its signal aborts. If it ends earlier, with or without an error, the process ends. */
export interface Part {
  readonly name: string
  /** Resolves soon after the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

/** The steps of a shutdown, in order. Each is bounded; the next step runs even if one fails or hangs. */
interface Stopping {
  /** Not ready, no new holds: new callers go to another agent. */
  stopPromising(): void
  /** Resolves once no hook is held any more. `signal` aborts when the bound is over. */
  finishHolds(signal: AbortSignal): Promise<void>
  /** Releases the hooks that are still held (their fallback runs). Resolves once the gateways have the last answers, for the other agents. */
  handOver(signal: AbortSignal): Promise<void>
  /** Releases the hooks that are still held, and closes the listeners. */
  close(): Promise<void>
}

export interface Supervision extends Stopping {
  readonly parts: readonly Part[]
  /** How long `finishHolds` may take, in ms. */
  readonly finishMs: number
  readonly clock: Clock
  readonly log: Log
  /** Default: the process. Tests pass their own. */
  readonly signals?: Pick<NodeJS.EventEmitter, 'on' | 'off'>
  readonly exit?: (code: number) => void
}

/** How long `close`, and the parts after their signal, may take, in ms. */
const CLOSE_MS = 3000

/** How long the gateways may take to store the last answers, in ms. */
const HAND_OVER_MS = 2000

/** Grace for the log thread's last line, in ms. */
const LAST_WORDS_MS = 50

type Ending =
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'part'; readonly part: string; readonly err: unknown }

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/**
 * Runs the parts until a signal comes or one of them ends, then stops in four steps. Returns the exit code: 0 after a signal, 1
 * after a part that ended early. After an early end the agent waits for no hook, because it cannot vouch without one of its parts. A
 * hook that is released early still has time for its fallback. A second signal calls `exit` at once.
 */
export async function supervise(supervision: Supervision): Promise<number> {
  const { parts, log, clock, finishMs } = supervision
  const sleeping = stayAwake()
  const stop = new AbortController()
  const caught = catchSignals(supervision)
  try {
    const running = parts.map(part => runPart(part, stop.signal))
    const ending = await Promise.race([caught.first, ...running])
    if (ending.kind === 'signal') log.info({ signal: ending.signal }, 'stopping')
    else log.fatal({ part: ending.part, err: ending.err }, 'part ended early')

    await step('stop promising', async () => supervision.stopPromising(), CLOSE_MS)
    const bound = ending.kind === 'signal' ? finishMs : 0
    if (bound > 0) await step('finish holds', signal => supervision.finishHolds(signal), bound)
    if (ending.kind === 'signal')
      await step('hand over', signal => supervision.handOver(signal), HAND_OVER_MS)
    await step('close', () => supervision.close(), CLOSE_MS)
    stop.abort(new Error('the agent is stopping'))
    await step('end parts', async () => void (await Promise.all(running)), CLOSE_MS)
    log.info('stopped')
    return ending.kind === 'signal' ? 0 : 1
  } finally {
    caught.release()
    sleeping()
  }

  async function step(what: string, run: (signal: AbortSignal) => Promise<void>, ms: number): Promise<void> {
    const over = new AbortController()
    const late = clock.sleep(ms, over.signal).then(
      () => over.abort(new Error(`${what}: not done within its bound`)),
      () => {}
    )
    try {
      await Promise.race([run(over.signal), late.then(() => over.signal.throwIfAborted())])
    } catch (err) {
      log.warn({ step: what, err }, 'shutdown step did not finish')
    } finally {
      over.abort()
    }
  }
}

/** Runs a part. The promise never rejects: the way in which the part ended is the result. */
async function runPart(part: Part, signal: AbortSignal): Promise<Ending> {
  try {
    await part.run(signal)
    return { kind: 'part', part: part.name, err: undefined }
  } catch (err) {
    return { kind: 'part', part: part.name, err }
  }
}

/** A promise of the first signal or uncaught error; the second signal exits. */
function catchSignals(supervision: Supervision) {
  const { log } = supervision
  const emitter = supervision.signals ?? process
  const exit = supervision.exit ?? (code => void setTimeout(() => process.exit(code), LAST_WORDS_MS))
  const { promise: first, resolve } = Promise.withResolvers<Ending>()
  let signals = 0
  const onSignal = (signal: string) => {
    signals += 1
    if (signals === 1) return resolve({ kind: 'signal', signal })
    log.warn({ signal }, 'second signal, exiting at once')
    exit(1)
  }
  const onError = (err: unknown) => {
    log.fatal({ err }, 'uncaught error')
    resolve({ kind: 'part', part: 'process', err })
  }
  for (const signal of SIGNALS) emitter.on(signal, onSignal)
  for (const event of ['uncaughtException', 'unhandledRejection']) emitter.on(event, onError)
  return {
    first,
    release() {
      for (const signal of SIGNALS) emitter.off(signal, onSignal)
      for (const event of ['uncaughtException', 'unhandledRejection']) emitter.off(event, onError)
    }
  }
}
