import type { Clock } from '../../base/clock.ts'
import type { Reply } from './connection.ts'

/** The pause before a retry if the server states none, in ms. */
const PAUSE_MS = 100

const TRIES = 4

/**
 * Retries a request after a 429; if a repetition is harmless, also after a 401, a 503 or a broken connection. The number of tries and
 * the signal bound it.
 *
 * @param harmless the request may be made twice (a GET)
 */
export async function patiently(
  ask: () => Promise<Reply>,
  { clock, signal, harmless }: { clock: Clock; signal: AbortSignal | undefined; harmless: boolean }
): Promise<Reply> {
  for (let left = TRIES - 1; ; left -= 1) {
    let pauseMs = PAUSE_MS
    try {
      const reply = await ask()
      const again = reply.status === 429 || (harmless && (reply.status === 503 || reply.status === 401))
      if (!again || left === 0) return reply
      pauseMs = reply.retryAfterMs ?? PAUSE_MS
    } catch (error) {
      if (!harmless || left === 0 || signal?.aborted) throw error
    }
    await clock.sleep(pauseMs, signal)
  }
}
