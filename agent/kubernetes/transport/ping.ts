import type { ClientHttp2Session } from 'node:http2'
import type { Clock } from '../../base/clock.ts'

export interface PingSettings {
  readonly everyMs: number
  readonly timeoutMs: number
}

/** The time for one more check of the socket after a timeout, in ms: if the agent was busy, the answer is waiting there. */
const LAST_LOOK_MS = 50

/**
 * Pings the server while the session lives, and destroys the session if no byte has arrived for `timeoutMs`. TCP alone would need
 * many minutes to notice a lost server. A byte of any stream counts, because on a slow line the answer to a ping queues behind a
 * large list.
 *
 * @param lastHeard when bytes last arrived on any stream of this session, by this clock
 */
export function keepAlive(
  session: ClientHttp2Session,
  clock: Clock,
  { everyMs, timeoutMs }: PingSettings,
  lastHeard: () => number
): void {
  let cancel = () => {}
  const later = (ms: number, then: () => void) => {
    cancel()
    cancel = clock.alarm(clock.now() + ms, then)
  }
  const ping = () => {
    // Between its destruction and its 'close' event, a session throws on any call.
    if (session.destroyed) return
    const sentAt = clock.now()
    let answered = false
    const silentSince = () => Math.max(sentAt, lastHeard())
    const check = (final: boolean) => {
      if (answered) return
      const left = silentSince() + timeoutMs - clock.now()
      if (left > 0) later(left, () => check(false))
      else if (!final) later(LAST_LOOK_MS, () => check(true))
      else session.destroy(new Error(`no answer to a ping for ${timeoutMs} ms`))
    }
    const sent = session.ping(error => {
      answered = true
      if (!error && !session.destroyed) later(everyMs, ping)
    })
    if (sent) later(timeoutMs, () => check(false))
    else session.destroy(new Error('too many pings are unanswered'))
  }
  session.once('close', () => cancel())
  later(everyMs, ping)
}
