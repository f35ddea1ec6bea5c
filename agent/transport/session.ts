import { connect, type ClientHttp2Session } from 'node:http2'
import type { Clock } from '../base/clock.ts'
import type { Credentials } from './credentials.ts'
import { keepAlive, type PingSettings } from './ping.ts'

/** One HTTP/2 session, and what its callers need. */
export interface Session {
  readonly http2: ClientHttp2Session
  /** Aborts when the server sends GOAWAY or the session ends: long streams must move to a new one. */
  readonly leaving: AbortSignal
  /** Call it for every chunk received: bytes are as good a sign of life as a ping's answer. */
  readonly heard: () => void
}

/** The windows of one stream, and of all together, in bytes: the default of 64 KiB makes a list of 100 MB twice as slow. */
const STREAM_WINDOW = 4 * 1024 * 1024
const SESSION_WINDOW = 16 * 1024 * 1024

/** The server sent GOAWAY. Not a failure: continue on a new session. */
export class Leaving extends Error {
  override readonly name = 'Leaving'
}

/**
 * Connects: TLS with ALPN `h2`, or HTTP/2 at once for `http://`. Resolves when connected. The session ends with `signal`.
 *
 * @throws Error when that takes longer than `timeoutMs`, or the socket's error
 */
export async function openSession(
  credentials: Credentials,
  clock: Clock,
  ping: PingSettings,
  timeoutMs: number,
  signal: AbortSignal
): Promise<Session> {
  const tls = await credentials.tls()
  signal.throwIfAborted()
  const http2 = connect(credentials.origin, {
    ...tls,
    // In MB. Chunks wait here only until the event loop reads them, but they may fill a whole window.
    maxSessionMemory: 64,
    settings: { enablePush: false, initialWindowSize: STREAM_WINDOW }
  })
  let lastHeard = clock.now()
  const leaving = new AbortController()
  http2.on('goaway', code => leaving.abort(new Leaving(`the server said GOAWAY (code ${code})`)))

  await new Promise<void>((resolve, reject) => {
    const timeout = new Error(`no connection to ${credentials.origin} within ${timeoutMs} ms`)
    const cancel = clock.alarm(clock.now() + timeoutMs, () => http2.destroy(timeout))
    const abort = () => http2.destroy()
    let failure: unknown
    signal.addEventListener('abort', abort, { once: true })
    http2.on('error', error => (failure ??= error))
    http2.once('close', () => {
      cancel()
      signal.removeEventListener('abort', abort)
      const why = failure ?? new Error('the server closed the connection')
      reject(why)
      leaving.abort(why)
    })
    http2.once('connect', () => {
      // This event comes a tick after the socket's own: if the session ends in between, `close` comes next.
      if (http2.destroyed) return
      cancel()
      http2.setLocalWindowSize(SESSION_WINDOW)
      keepAlive(http2, clock, ping, () => lastHeard)
      resolve()
    })
  })
  return { http2, leaving: leaving.signal, heard: () => (lastHeard = clock.now()) }
}
