import { connect, constants, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2'
import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../base/clock.ts'
import { networkMeaning } from '../../config/config.ts'
import type { Credentials } from './credentials.ts'

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

interface PingSettings {
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

interface Handlers {
  readonly onHead: (status: number, headers: IncomingHttpHeaders) => void
  readonly onData: (chunk: Buffer) => void
}

/**
 * One request on one session. Resolves when the answer is complete. Rejects if it was cut off, if a handler threw, or with the signal's
 * reason. The stream is closed afterwards in any case.
 */
export async function exchange(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: string | undefined,
  signal: AbortSignal,
  { onHead, onData }: Handlers
): Promise<void> {
  if (signal.aborted) throw reasonOf(signal)
  const stream = session.request(headers, { endStream: body === undefined })
  await new Promise<void>((resolve, reject) => {
    let failure: unknown
    let ended = false
    const fail = (error: unknown) => {
      failure ??= error
      stream.close(constants.NGHTTP2_CANCEL)
    }
    const guarded =
      <A extends unknown[]>(handler: (...args: A) => void) =>
      (...args: A) => {
        if (failure !== undefined) return
        try {
          handler(...args)
        } catch (error) {
          fail(error)
        }
      }
    const abort = () => fail(reasonOf(signal))
    signal.addEventListener('abort', abort, { once: true })
    stream.on(
      'response',
      guarded(head => onHead(head[':status'] ?? 0, head))
    )
    stream.on('data', guarded(onData))
    stream.on('end', () => (ended = true))
    stream.on('error', error => (failure ??= error))
    stream.on('close', () => {
      signal.removeEventListener('abort', abort)
      const cut = !ended || stream.rstCode !== constants.NGHTTP2_NO_ERROR
      if (failure !== undefined) reject(failure)
      else if (cut) reject(new Error(`the connection was cut (HTTP/2 code ${stream.rstCode})`))
      else resolve()
    })
    if (body !== undefined) stream.end(body)
  })
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason })
}
