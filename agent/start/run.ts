import { assemble, type Assembly } from './assemble.ts'
import { systemClock, stayAwake, type Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { createLog, type Log } from '../base/log.ts'
import { inTime, orAborted } from '../kubernetes/transport/connection.ts'
import { startInjection } from '../hook/inject/server.ts'
import { listen, hookPolicy, MOST_HOOKS, pagePolicy, type Listening } from '../hook/listen.ts'

/** How often a round runs if nothing happens, in ms. */
const HEARTBEAT_MS = 1000
/** How long the process may live after its last step, in ms. */
const LAST_WORDS_MS = 1000

/**
 * Runs the agent until a signal comes. Returns the exit code.
 *
 * @throws Error if there are no usable Kubernetes credentials, or the agent cannot listen on the port
 */
export async function run(config: Config, version: string): Promise<number> {
  const clock = systemClock
  const log = createLog(config.log)
  const parts = assemble({ config, version, clock, log })
  const { slots, loop, sources, stop } = parts
  const { inject, serve } = config
  const injection = { host: serve.host, clock, log: log.child({ part: 'inject' }) }
  const ports = await openPorts(serve, parts).catch(async (err: unknown) => {
    await stop()
    throw err
  })
  const stopInjection =
    inject &&
    (await startInjection({ ...injection, inject }).catch(async (err: unknown) => {
      await ports.close()
      await stop()
      throw err
    }))
  const { port, pagePort } = ports
  log.info({ version, host: serve.host, port, pagePort, dryRun: config.drain.dryRun }, 'listening')

  const code = await supervise({
    parts: [
      { name: 'http', run: signal => Promise.race([ports.failed, aborted(signal)]) },
      {
        // Events wake the loop. Without events, the heartbeat does.
        name: 'heartbeat',
        run: async signal => {
          while (!signal.aborted) {
            loop.wake()
            await clock.sleep(HEARTBEAT_MS, signal).catch(() => {})
          }
        }
      }
    ],
    finishMs: serve.shutdownTimeoutMs,
    clock,
    log: log.child({ part: 'shutdown' }),
    stopPromising() {
      slots.close()
      // This agent still finishes the hooks that it holds; other agents take the new ones.
      void sources.leader.release()
    },
    finishHolds: signal => slots.emptied(signal),
    async handOver(signal) {
      slots.releaseAll()
      await sources.barrier?.handOver(signal)
    },
    async close() {
      slots.releaseAll()
      await Promise.all([stopInjection?.(), ports.close()])
      await stop()
    }
  })
  // Anything that is still open must not outlive the grace. Without such a thing the process ends earlier.
  setTimeout(() => process.exit(code), LAST_WORDS_MS).unref()
  return code
}

/** Resolves when the signal aborts. */
function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}

interface Ports extends Pick<Listening, 'port' | 'close' | 'failed'> {
  /** The port of dashboard and metrics: the same as `port`, unless `serve.pagePort` is set. */
  readonly pagePort: number
}

/**
 * Listens on the agent's ports, except for that of the webhook.
 *
 * @throws Error with `code` when one of them cannot be listened on; then none is open
 */
export async function openPorts(
  serve: Config['serve'],
  { app, pages }: Pick<Assembly, 'app' | 'pages'>
): Promise<Ports> {
  const { host, port, pagePort = 0 } = serve
  const hooks = await listen(app, { host, port }, hookPolicy(MOST_HOOKS.maxHooks))
  let apart: Listening | undefined
  try {
    if (pages) apart = await listen(pages, { host, port: pagePort }, pagePolicy)
  } catch (err) {
    await hooks.close()
    throw err
  }
  const failed = Promise.race([hooks.failed, ...(apart ? [apart.failed] : [])])
  // Prevents an unhandled rejection if nothing awaits it; a reader still gets the error.
  failed.catch(() => {})
  return {
    port: hooks.port,
    pagePort: (apart ?? hooks).port,
    failed,
    close: async () => void (await Promise.all([hooks.close(), apart?.close()]))
  }
}

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
const LAST_LINE_MS = 50

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
    await inTime({ clock, ms }, signal => orAborted(run(signal), signal)).catch((err: unknown) =>
      log.warn({ step: what, err }, 'shutdown step did not finish')
    )
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
  const exit = supervision.exit ?? (code => void setTimeout(() => process.exit(code), LAST_LINE_MS))
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
