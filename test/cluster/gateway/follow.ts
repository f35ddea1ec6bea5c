import { request } from 'node:http'
import { createInterface } from 'node:readline'
import type { StoreEvent } from '../../../sandbox/apisix/store.ts'

/** The pause before a new connection, in ms. */
const AGAIN_MS = 500

/** Calls `apply` for each write of a store, one after another, forever. After a lost connection, a write may come twice. */
export async function follow(url: string, apply: (event: StoreEvent) => Promise<void>): Promise<never> {
  for (;;) {
    await readLines(url, apply).catch((err: unknown) => console.error(`${url}: ${String(err)}`))
    await new Promise(resolve => setTimeout(resolve, AGAIN_MS))
  }
}

async function readLines(url: string, apply: (event: StoreEvent) => Promise<void>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const asked = request(url, response => {
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
