import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { NoKeys } from './token.ts'

/** The keys that the API server signs ServiceAccount tokens with. */
export interface SigningKeys {
  readonly find: JWTVerifyGetKey
  stop(): void
}

interface SigningKeysParts {
  readonly get: (
    path: string,
    signal: AbortSignal
  ) => Promise<{ readonly status: number; readonly json: unknown }>
  readonly clock: Clock
  readonly log: Log
}

/** Every ServiceAccount may read this path, by Kubernetes' own role `system:service-account-issuer-discovery`. */
const PATH = '/openid/v1/jwks'
/** How often the keys are read again, in ms, so that a removed key is not trusted for longer. */
const EVERY_MS = 300_000
/** The pause between reads while the agent has no keys, in ms. */
const RETRY_MS = 1000
/** A token with an unknown key makes the agent fetch the keys at once, at most once in this time, in ms. */
const AT_MOST_EVERY_MS = 10_000

const keySet = z.looseObject({ keys: z.array(z.looseObject({ kty: z.string() })) })

/**
 * Reads the keys now and every few minutes, so that no hook waits for the API server. If the API server does not answer, the last keys
 * stay valid.
 */
export function createSigningKeys({ get, clock, log }: SigningKeysParts): SigningKeys {
  const ended = new AbortController()
  let keys: ReturnType<typeof createLocalJWKSet> | undefined
  let reading: Promise<void> | undefined
  let readAt = -Infinity
  void keepReading()

  return {
    async find(header, token) {
      if (!keys) await read()
      try {
        return await known()(header, token)
      } catch (err) {
        if (!(err instanceof errors.JWKSNoMatchingKey) || clock.now() - readAt < AT_MOST_EVERY_MS) throw err
        await read()
        return known()(header, token)
      }
    },
    stop: () => ended.abort(new Error('the agent is stopping'))
  }

  function known() {
    if (keys) return keys
    throw new NoKeys(`the API server could not be asked for the keys of tokens (${PATH}); try again`)
  }

  async function keepReading(): Promise<void> {
    while (!ended.signal.aborted) {
      await read()
      await clock.sleep(keys ? EVERY_MS : RETRY_MS, ended.signal).catch(() => {})
    }
  }

  /** Concurrent callers share one read. Never rejects. */
  function read(): Promise<void> {
    reading ??= readOnce()
      .catch((err: unknown) => {
        if (!ended.signal.aborted) log.warn({ err }, 'the keys of tokens could not be read')
      })
      .finally(() => {
        readAt = clock.now()
        reading = undefined
      })
    return reading
  }

  async function readOnce(): Promise<void> {
    const { status, json } = await get(PATH, ended.signal)
    const parsed = keySet.safeParse(json)
    if (status !== 200 || !parsed.success) throw new Error(`GET ${PATH}: status ${status}, no key set`)
    keys = createLocalJWKSet(parsed.data)
  }
}
