import { assemble, type Assembly } from './assemble.ts'
import { systemClock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { createLog } from '../base/log.ts'
import { startInjection } from '../hook/inject/server.ts'
import { supervise } from './shutdown.ts'
import { listen, type Listening } from '../hook/listen.ts'
import { hookPolicy, MOST_HOOKS, pagePolicy } from '../hook/port-policy.ts'

/** How often readiness and liveness are checked if nothing happens, in ms. */
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
  const { slots, loop, readiness, report, sources, stop } = parts
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
            report()
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
      readiness.part('shutdown').notReady('the agent is stopping')
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
  { app, pages, page }: Pick<Assembly, 'app' | 'pages' | 'page'>
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
  page?.open(apart ?? hooks)
  const failed = Promise.race([hooks.failed, ...(apart ? [apart.failed] : [])])
  // Prevents an unhandled rejection if nothing awaits it; a reader still gets the error.
  failed.catch(() => {})
  return {
    port: hooks.port,
    pagePort: (apart ?? hooks).port,
    failed,
    async close() {
      await page?.close()
      await Promise.all([hooks.close(), apart?.close()])
    }
  }
}
