import type { Config } from '../config/config.ts'
import type { App } from '../hook/app.ts'
import { listen, type Listening } from '../hook/listen.ts'
import { hookPolicy, MOST_HOOKS, pagePolicy } from '../hook/port-policy.ts'
import type { Page } from './start-page.ts'

interface Ports extends Pick<Listening, 'port' | 'close' | 'failed'> {
  /** The port of dashboard and metrics: the same as `port`, unless `serve.pagePort` is set. */
  readonly pagePort: number
}

interface Apps {
  /** The app on `serve.port`. */
  readonly app: App
  /** The app on `serve.pagePort`, if that is set. */
  readonly pages: App | undefined
  readonly page: Page | undefined
}

/**
 * Listens on the agent's ports, except for that of the webhook.
 *
 * @throws Error with `code` when one of them cannot be listened on; then none is open
 */
export async function openPorts(serve: Config['serve'], { app, pages, page }: Apps): Promise<Ports> {
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
