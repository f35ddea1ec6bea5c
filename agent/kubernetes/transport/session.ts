import { connect, type ClientHttp2Session } from 'node:http2'
import type { Clock } from '../../base/clock.ts'
import { networkMeaning } from '../../config/network.ts'
import type { Credentials } from './credentials.ts'
import { keepAlive, type PingSettings } from './ping.ts'

/** One HTTP/2 session, with the signals that its callers need. */
export interface Session {
  readonly http2: ClientHttp2Session
  /** Aborts when the server sends GOAWAY or the session ends. Long streams must then move to a new session. */
  readonly leaving: AbortSignal
  /** Call it for every received chunk, because bytes show that the server lives, like the answer to a ping. */
  readonly heard: () => void
}

/** The flow-control window of one stream, and of all together, in bytes. The default of 64 KiB makes a list of 100 MB twice as slow. */
const STREAM_WINDOW = 4 * 1024 * 1024
const SESSION_WINDOW = 16 * 1024 * 1024

/** The server sent GOAWAY. Not a failure: continue on a new session. */
export class Leaving extends Error {
  override readonly name = 'Leaving'
}

/** The errors of TLS or HTTP/2, before the first frame, if the other side only speaks HTTP/1.1. */
const NOT_HTTP2 = /^ERR_(HTTP2_ERROR|SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)$/

/** The errors if nothing answers at the address and port. */
const UNANSWERED = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT)$/

const ROUTE = {
  address: 'server of the kubeconfig',
  scheme: 'server of the kubeconfig',
  ca: 'certificate-authority of the kubeconfig'
}

const CHECK_ADDRESS =
  'no server answers at that address and port: check server of the kubeconfig, that the API server runs, and NetworkPolicies'

/**
 * Connects: TLS with ALPN `h2`, or HTTP/2 at once for `http://`. Resolves when the server has sent its first frame, which shows
 * that it speaks HTTP/2. The session ends with `signal`.
 *
 * @throws Error if that takes longer than `timeoutMs`; or the socket's error in words, with the original one as its cause
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
      reject(inWords(why, credentials.origin))
      leaving.abort(why)
    })
    http2.once('remoteSettings', () => {
      // The session may have ended at the same moment; then `close` follows.
      if (http2.destroyed) return
      cancel()
      http2.setLocalWindowSize(SESSION_WINDOW)
      keepAlive(http2, clock, ping, () => lastHeard)
      resolve()
    })
  })
  return { http2, leaving: leaving.signal, heard: () => (lastHeard = clock.now()) }
}

/** The failure of a session that never opened. */
function inWords(failure: unknown, origin: string): unknown {
  const { code } = failure as NodeJS.ErrnoException
  if (code !== undefined && NOT_HTTP2.test(code)) {
    return new Error(
      `the API server at ${origin} does not offer HTTP/2, which the agent needs: name the API server itself in the kubeconfig, not kubectl proxy or another proxy for HTTP/1.1`,
      { cause: failure }
    )
  }
  const meaning = code !== undefined && UNANSWERED.test(code) ? CHECK_ADDRESS : networkMeaning(code, ROUTE)
  return meaning === ''
    ? failure
    : new Error(`no connection to the API server at ${origin} (${code}): ${meaning}`, { cause: failure })
}
