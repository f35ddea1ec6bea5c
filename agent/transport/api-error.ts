import { fieldsOf, listOf, numberOf, textOf } from '../base/read.ts'

/** The API server said no: as an HTTP status, or as an ERROR event inside a watch. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly reason: string
  /** How long the server asked us to wait, in ms. */
  readonly retryAfterMs: number | undefined
  /** Causes such as `ResourceVersionTooLarge`. */
  readonly causes: readonly string[]

  /** @param body a `Status` object, or whatever came instead */
  constructor(what: string, status: number, body: unknown, retryAfterMs?: number) {
    const { message, reason, details } = fieldsOf(body)
    super(`${what}: ${status} ${textOf(reason) ?? ''} ${textOf(message) ?? ''}`.trimEnd().slice(0, 500))
    this.status = status
    this.reason = textOf(reason) ?? ''
    this.retryAfterMs = retryAfterMs
    this.causes = listOf(fieldsOf(details)['causes']).map(cause => textOf(fieldsOf(cause)['reason']) ?? '')
  }
}

/** An ERROR event of a watch: a `Status` object that carries its own code. */
export function watchError(path: string, status: unknown): ApiError {
  return new ApiError(`watch ${path}`, numberOf(fieldsOf(status)['code']) ?? 500, status)
}

/** The server no longer has the history from that revision on, or the page token is too old. */
export const isExpired = (error: unknown) =>
  error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone')

/** The server has not got to the revision we have seen: it was restored from a backup, or its cache lags. */
export const isFromTheFuture = (error: unknown) =>
  error instanceof ApiError &&
  (error.causes.includes('ResourceVersionTooLarge') || /too large resource version/i.test(error.message))

/**
 * The server does not know what we asked for: an old one, asked for a WatchList; or a new one over an etcd before 3.4.25 or
 * 3.5.8, which answers 500 "the required storage feature RequestWatchProgress is disabled" (kube-apiserver 1.36 on 3.4.23).
 */
export const isUnsupported = (error: unknown) =>
  error instanceof ApiError &&
  (error.status === 400 || error.status === 422 || error.message.includes('required storage feature'))

/** How long the server asked us to stay away, in ms; 0 where it did not. */
export const retryAfterOf = (error: unknown) => (error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0)

/** `Retry-After` in ms, seconds or date form (RFC 9110 10.2.3). At most a minute, so that no server can stop the agent. */
export function parseRetryAfter(value: unknown, now: number): number | undefined {
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const seconds = Number(value)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - now
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), 60_000)
}
