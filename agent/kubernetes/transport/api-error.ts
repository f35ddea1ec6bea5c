import { fieldsOf, listOf, numberOf, textOf } from '../../base/read.ts'

/** A refusal of the API server: an HTTP status, or an ERROR event in a watch. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly reason: string
  /** The wait that the server asks for, in ms. */
  readonly retryAfterMs: number | undefined
  /** Causes such as `ResourceVersionTooLarge`. */
  readonly causes: readonly string[]

  /** @param body a `Status` object, or any other body */
  constructor(what: string, status: number, body: unknown, retryAfterMs?: number) {
    const { message, reason, details } = fieldsOf(body)
    super(`${what}: ${status} ${textOf(reason) ?? ''} ${textOf(message) ?? ''}`.trimEnd().slice(0, 500))
    this.status = status
    this.reason = textOf(reason) ?? ''
    this.retryAfterMs = retryAfterMs
    this.causes = listOf(fieldsOf(details)['causes']).map(cause => textOf(fieldsOf(cause)['reason']) ?? '')
  }
}

/** An ERROR event of a watch: a `Status` object with its own code. */
export function watchError(path: string, status: unknown): ApiError {
  return new ApiError(`watch ${path}`, numberOf(fieldsOf(status)['code']) ?? 500, status)
}

/** The server has dropped the history of that revision, or the page token is too old. */
export const isExpired = (error: unknown) =>
  error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone')

/** The server has not reached a revision that the agent has seen: it was restored from a backup, or its cache is late. */
export const isFromTheFuture = (error: unknown) =>
  error instanceof ApiError &&
  (error.causes.includes('ResourceVersionTooLarge') || /too large resource version/i.test(error.message))

/**
 * The server does not support the request. Either an old server is asked for a WatchList, or a new one has an etcd before 3.4.25 or 3.5.8.
 * That one answers 500 "the required storage feature RequestWatchProgress is disabled" (kube-apiserver 1.36 on 3.4.23).
 */
export const isUnsupported = (error: unknown) =>
  error instanceof ApiError &&
  (error.status === 400 || error.status === 422 || error.message.includes('required storage feature'))

/** The server's `Retry-After`, in ms; 0 if it sent none. */
export const retryAfterOf = (error: unknown) => (error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0)

/** Parses `Retry-After`, seconds or date (RFC 9110 10.2.3), into ms. At most a minute, so that no server can stop the agent. */
export function parseRetryAfter(value: unknown, now: number): number | undefined {
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const seconds = Number(value)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - now
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), 60_000)
}
