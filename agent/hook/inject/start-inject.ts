import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/config.ts'
import type { Log } from '../../base/log.ts'
import { followPair } from './pair.ts'
import { serveWebhook } from './server.ts'
import { readInjectSettings } from './settings.ts'

interface InjectParts {
  readonly inject: NonNullable<Config['inject']>
  readonly host: string
  readonly clock: Clock
  readonly log: Log
}

/**
 * The webhook that adds hooks to pods. Resolves with the function that stops it.
 *
 * @throws Error if `inject.file` cannot be read, or the webhook cannot listen on its port
 */
export async function startInjection({
  inject,
  host,
  clock,
  log
}: InjectParts): Promise<() => Promise<void>> {
  const settings = readInjectSettings(inject.file)
  const webhook = await serveWebhook({ host, port: inject.port }, settings, log, clock)
  const stop = followPair(settings, pair => webhook.use(pair), { clock, log })
  log.info({ port: webhook.port }, 'adding hooks to pods that ask for them')
  return async () => {
    stop()
    await webhook.close()
  }
}
