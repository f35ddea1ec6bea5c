import { createHmac } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { parseEntries } from './barrier-input.ts'
import type { Barrier } from './barrier.ts'

export interface FetchEntriesOptions {
  /** The agent's base URL. */
  readonly url: string
  readonly token: string
  /** After this many ms the gateway serves without the entries. */
  readonly timeoutMs: number
}

/** The pause between two tries, in ms. */
const PAUSE = 200

/**
 * Fetches the present entries at a gateway's start. Retries until they have arrived or the time is over.
 * @returns why it gave up, or an empty string
 */
export async function fetchEntries(
  barrier: Barrier,
  { url, token, timeoutMs }: FetchEntriesOptions,
  stopped: AbortSignal
): Promise<string> {
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([timeout, stopped])
  const path = `/v${barrier.wire}/barrier-entries`
  const shown = createHmac('sha1', token).update(`GET ${path}`).digest('base64')
  let why = 'no answer'
  while (!signal.aborted) {
    try {
      const answer = await fetch(`${url}${path}`, {
        headers: { authorization: `Bearer ${shown}` },
        signal
      })
      const parsed = parseEntries(await answer.text())
      if (answer.status === 200 && parsed.ok) {
        for (const entry of parsed.value) barrier.entries.put(entry)
        return ''
      }
      why = parsed.ok ? `status ${answer.status}` : `status ${answer.status}: ${parsed.problem}`
    } catch (err) {
      if (!signal.aborted) why = String(err)
    }
    await wait(PAUSE, undefined, { signal, ref: false }).catch(() => {})
  }
  return `gave up fetching entries from ${url}: ${why}`
}
