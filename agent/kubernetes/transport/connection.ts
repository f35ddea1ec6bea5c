import type { Clock } from '../../base/clock.ts'
import { jsonOr } from '../../base/read.ts'
import { ApiError, parseRetryAfter, createLineSplitter, objectReader } from './objects.ts'
import type { Credentials } from './credentials.ts'
import { exchange, Leaving, openSession, type Session } from './session.ts'
import type { Millis } from '../../rules/drain/facts.ts'

export interface Reply {
  readonly status: number
  /** The parsed body; `undefined` if it is empty, or an error body that is not JSON. */
  readonly json: unknown
  /** From `Retry-After`, in ms. */
  readonly retryAfterMs: number | undefined
}

/** All requests go over one HTTP/2 session, which is replaced when it ends or the server sends GOAWAY. */
export interface Connection {
  /** Any HTTP status is an answer. Rejects if there is none within `requestTimeoutMs`, or with the signal's reason. */
  request(method: string, path: string, body?: unknown, signal?: AbortSignal, each?: Each): Promise<Reply>
  /**
   * A GET whose answer is read line by line until it ends. Calls `onOpen` when the server has accepted it. Resolves when the server
   * ends it or sends GOAWAY. Rejects with ApiError on any status but 200, if the connection breaks, if a handler throws, or with
   * the signal's reason.
   */
  stream(path: string, handlers: StreamHandlers, signal: AbortSignal): Promise<void>
  /** How far the API server's clock is behind the agent's, in ms. */
  serverBehindMs(): number
  /** Ends the session and everything on it. Resolves when the socket is closed. */
  close(): Promise<void>
}

/** Called with each object of a list as soon as it has come. What it returns is kept in the object's place. */
type Each = (object: unknown) => unknown

export interface StreamHandlers {
  readonly onOpen: () => void
  /** See `readLine`. */
  readonly onLine: (line: Buffer) => void
}

export interface ConnectionSettings {
  readonly connectTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly pingEveryMs: number
  readonly pingTimeoutMs: number
}

const DEFAULTS: ConnectionSettings = {
  connectTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  pingEveryMs: 500,
  pingTimeoutMs: 1_000
}

/** The most bytes of an error body that are read; the rest is ignored. */
const LONGEST_ERROR = 64 * 1024

export function createConnection(
  credentials: Credentials,
  clock: Clock,
  settings: Partial<ConnectionSettings> = {}
): Connection {
  const { connectTimeoutMs, requestTimeoutMs, pingEveryMs, pingTimeoutMs } = { ...DEFAULTS, ...settings }
  const ping = { everyMs: pingEveryMs, timeoutMs: pingTimeoutMs }
  const closed = new AbortController()
  const offset = createClockOffset()
  const open = new Set<Session>()
  let current: Promise<Session> | undefined

  const session = (): Promise<Session> => {
    if (closed.signal.aborted) return Promise.reject(closedError())
    if (current) return current
    const opening = openSession(credentials, clock, ping, connectTimeoutMs, closed.signal)
    const forget = () => {
      if (current === opening) current = undefined
    }
    current = opening
    const keep = (opened: Session) => {
      if (opened.leaving.aborted) forget()
      opened.leaving.addEventListener('abort', forget, { once: true })
      open.add(opened)
      opened.http2.once('close', () => open.delete(opened))
    }
    void opening.then(keep, forget)
    return opening
  }
  const headersFor = async (method: string, path: string, hasBody: boolean) => ({
    ...(await credentials.headers()),
    ':method': method,
    ':path': path,
    accept: 'application/json',
    'user-agent': 'apisix-drain',
    ...(hasBody ? { 'content-type': 'application/json' } : {})
  })

  return {
    async request(method, path, body, signal, each) {
      const what = `${method} ${path}`
      const reader = objectReader(each)
      let [status, bytes] = [0, 0]
      let retryAfterMs: number | undefined
      await inTime({ clock, ms: requestTimeoutMs, what: `${what}: ` }, async late => {
        const either = AbortSignal.any([closed.signal, late, ...(signal ? [signal] : [])])
        const { http2, heard } = await orAborted(session(), either)
        const head = await orAborted(headersFor(method, path, body !== undefined), either)
        const askedAt = clock.now()
        await exchange(http2, head, body === undefined ? undefined : JSON.stringify(body), either, {
          onHead(got, all) {
            offset.note(all.date, askedAt, clock.now())
            status = got
            retryAfterMs = parseRetryAfter(all['retry-after'], clock.now())
          },
          onData(chunk) {
            heard()
            bytes += chunk.length
            reader.write(chunk)
          }
        })
      })
      if (status === 401) credentials.refused()
      const json = bytes === 0 ? undefined : endOf(reader, what, status)
      return { status, json, retryAfterMs }
    },

    async stream(path, { onOpen, onLine }, signal) {
      const either = AbortSignal.any([closed.signal, signal])
      const { http2, heard, leaving } = await orAborted(session(), either)
      const head = await orAborted(headersFor('GET', path, false), either)
      const askedAt = clock.now()
      const split = createLineSplitter(onLine)
      let refusal: { status: number; retryAfterMs: number | undefined } | undefined
      let errorBody = Buffer.alloc(0)
      const work = exchange(http2, head, undefined, AbortSignal.any([either, leaving]), {
        onHead(status, headers) {
          offset.note(headers.date, askedAt, clock.now())
          if (status === 200) return onOpen()
          refusal = { status, retryAfterMs: parseRetryAfter(headers['retry-after'], clock.now()) }
        },
        onData(chunk) {
          heard()
          if (!refusal) split(chunk)
          else if (errorBody.length < LONGEST_ERROR) errorBody = Buffer.concat([errorBody, chunk])
        }
      })
      await work.catch(error => {
        if (!(error instanceof Leaving)) throw error
      })
      if (!refusal) return
      if (refusal.status === 401) credentials.refused()
      const { status, retryAfterMs } = refusal
      throw new ApiError(
        `GET ${path}`,
        status,
        jsonOr(() => JSON.parse(errorBody.toString()) as unknown),
        retryAfterMs
      )
    },

    serverBehindMs: () => offset.behindMs(),

    async close() {
      closed.abort(closedError())
      await current?.catch(() => undefined)
      await Promise.all([...open].map(({ http2 }) => ended(http2)))
    }
  }
}

interface Bound {
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  /** A healthy API server answers in one or two. */
  readonly ms?: number
  readonly what?: string
}

/** Runs with a signal that aborts after `ms`. */
export async function inTime<T>(
  { clock, ms = 1000, what = '' }: Bound,
  run: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const late = new AbortController()
  const overdue = () => late.abort(new Error(`${what}no answer within ${ms} ms`))
  const cancel = clock.alarm(clock.now() + ms, overdue)
  return await run(late.signal).finally(cancel)
}

const closedError = () => new Error('the connection to the API server was closed by us')

/** @throws Error if a success has a body that is not JSON, because it must not count as an empty answer */
function endOf(reader: ReturnType<typeof objectReader>, what: string, status: number): unknown {
  try {
    return reader.end()
  } catch (error) {
    if (status >= 400) return undefined
    throw new Error(`${what}: ${status} with a body that is not JSON`, { cause: error })
  }
}

/** A shared answer; rejects with the signal's reason once this caller does not wait any more. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function ended(http2: Session['http2']): Promise<void> {
  return new Promise(resolve => {
    http2.once('close', () => resolve())
    http2.destroy()
  })
}

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

/** The resolution of Date headers: whole seconds. */
const RESOLUTION_MS = 1000
/** How many answers count: clocks drift, and a single answer may not show a small step of the clock. */
const SAMPLES = 10

interface Bounds {
  readonly least: number
  readonly most: number
}

/**
 * How far the API server's clock is behind the agent's, from the Date headers of its answers.
 *
 * Each answer gives a lower and an upper bound of the offset, however its time divides between request and response (Cristian's algorithm).
 * The offset lies where the bounds of the last ten answers overlap. The lower end of that range is used, because it is never too high.
 * So deadlines may come early (by a second and the time of the quickest answer), but not late. If the range includes 0, the offset is 0, so
 * a server whose clock is ahead by less than that counts as equal. An answer outside of the range shows that the server's clock was set. A
 * smaller step has its full effect after ten more answers.
 */
export function createClockOffset() {
  let samples: Bounds[] = []
  const common = (): Bounds => ({
    least: Math.max(...samples.map(({ least }) => least)),
    most: Math.min(...samples.map(({ most }) => most))
  })
  return {
    /** @param askedAt when the request was sent. @param heardAt when the head of its answer came: the server read its clock in between */
    note(date: string | undefined, askedAt: Millis, heardAt: Millis) {
      const at = Date.parse(date ?? '')
      if (Number.isNaN(at)) return
      const sample = { least: askedAt - at - RESOLUTION_MS, most: heardAt - at }
      samples = [...samples, sample].slice(-SAMPLES)
      const { least, most } = common()
      if (least > most) samples = [sample]
    },
    /** The ms to add to a time of the API server to convert it to the agent's clock; 0 while the clocks may agree. */
    behindMs(): number {
      if (samples.length === 0) return 0
      const { least, most } = common()
      return least <= 0 && most >= 0 ? 0 : least
    }
  }
}
