import { request } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import type { StoreEvent } from '../../../sandbox/apisix/store.ts'

/** The pause before a new connection, in ms. */
const AGAIN_MS = 500

/**
 * Calls `apply` for each write of a store, one after another, until the signal. After a lost connection, `apply` may get a
 * write twice.
 */
export async function follow(
  url: string,
  apply: (event: StoreEvent) => Promise<void>,
  signal: AbortSignal = new AbortController().signal
): Promise<void> {
  while (!signal.aborted) {
    await readLines(url, apply, signal).catch((err: unknown) => {
      if (!signal.aborted) console.error(`${url}: ${String(err)}`)
    })
    await wait(AGAIN_MS, undefined, { signal }).catch(() => {}) // rejects only at the signal
  }
}

async function readLines(
  url: string,
  apply: (event: StoreEvent) => Promise<void>,
  signal: AbortSignal
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const asked = request(url, { signal }, response => {
    response.once('error', reject)
    const lines = createInterface({ input: response })
    const read = async () => {
      for await (const line of lines) await apply(JSON.parse(line) as StoreEvent)
    }
    read().then(resolve, reject)
  })
  asked.on('error', reject)
  asked.end()
  await promise
}
