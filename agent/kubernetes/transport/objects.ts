import { createJsonReader, readJson, TooLong, fieldsOf, textOf, listOf, numberOf } from '../../base/read.ts'

/** Quotes inside a string are escaped, so these bytes are always a key. `managedFields` is never the first key of its object. */
const KEY = Buffer.from(',"managedFields":[')
const [QUOTE, BACKSLASH, OPEN, CLOSE, NEWLINE, RETURN] = [0x22, 0x5c, 0x5b, 0x5d, 0x0a, 0x0d]

/**
 * A JSON document of the API server without any `managedFields` (the last writer of each field). The agent never reads them. They
 * are half of a pod, and half of the time that parsing many pods takes. The API server cannot leave them out: it offers whole
 * objects or bare metadata.
 */
function withoutManagedFields(json: Buffer): string {
  let text = ''
  let from = 0
  for (let at = json.indexOf(KEY); at !== -1; at = json.indexOf(KEY, from)) {
    const end = endOfArray(json, at + KEY.length)
    if (end === undefined) break
    text += json.toString('utf8', from, at)
    from = end
  }
  return text + json.toString('utf8', from)
}

/** The index after an array's closing bracket; `at` is the first byte inside the array. `undefined`: there is no closing bracket. */
function endOfArray(json: Buffer, at: number): number | undefined {
  let depth = 1
  let quoted = false
  for (let i = at; i < json.length; i += 1) {
    const byte = json[i]
    if (quoted) {
      if (byte === BACKSLASH) i += 1
      else if (byte === QUOTE) quoted = false
    } else if (byte === QUOTE) quoted = true
    else if (byte === OPEN) depth += 1
    else if (byte === CLOSE && --depth === 0) return i + 1
  }
  return undefined
}

/** Text of this length is read in a few ms, whatever it contains. */
const SHORT = 64 * 1024
/** A longer line of a watch is not read: etcd refuses objects over 1.5 MB, and JSON makes few of them that large. */
const LONGEST_LINE = 4 * 2 ** 20
const CUT = Symbol('cut')

const parse = (text: Buffer): unknown => JSON.parse(withoutManagedFields(text))

/** Reads an answer while it comes. `each` is called with each object of a list, and returns what is kept of it. */
export const objectReader = (each?: (object: unknown) => unknown) =>
  createJsonReader({ parse, each, beyond: beginningOf })

/** The object in a line of a watch. @throws SyntaxError */
export function readLine(line: Buffer): unknown {
  if (line.length <= SHORT) return parse(line)
  try {
    return readJson(line, { parse })
  } catch (error) {
    if (error instanceof TooLong) return beginningOf(line)
    throw error
  }
}

/**
 * An object that is too large to be read, or the event of one, as far as it can be told apart from others. A tenant may have made it, so
 * it must not end the watch of all others. The API server writes the uid before all that a tenant can make long.
 */
function beginningOf(text: Buffer): unknown {
  const beginning = text.toString('utf8', 0, 4096)
  const [, type] = /^\{"type":"(\w+)"/.exec(beginning) ?? []
  const [, known] = /"metadata":(\{[^{}]*?"uid":"[^"]*"(?:,"resourceVersion":"[^"]*")?)/.exec(beginning) ?? []
  const object = { [CUT]: true, metadata: known === undefined ? {} : (JSON.parse(`${known}}`) as unknown) }
  return type === undefined ? object : { type, object }
}

/** What identifies an object. `undefined`: nothing does, or the object was too large to be read. */
export function identityOf(object: unknown) {
  const fields = fieldsOf<{ metadata: unknown; [CUT]: unknown }>(object)
  const meta = fieldsOf(fields.metadata)
  const [uid, name, namespace] = [textOf(meta['uid']), textOf(meta['name']), textOf(meta['namespace'])]
  const isKnown = uid !== undefined && name !== undefined && namespace !== undefined
  return isKnown && fields[CUT] !== true ? { uid, name, namespace } : undefined
}

/**
 * Splits a byte stream at newlines, wherever its chunks end. It works on bytes: a chunk may end in the middle of a character, and a newline
 * byte is never part of a character. Of a line that is longer than `longest` bytes only a beginning is kept, which is longer too.
 */
export function createLineSplitter(onLine: (line: Buffer) => void, longest = LONGEST_LINE) {
  let held: Buffer[] = []
  let heldBytes = 0
  const emit = (last: Buffer) => {
    const line = held.length === 0 ? last : Buffer.concat(heldBytes > longest ? held : [...held, last])
    held = []
    heldBytes = 0
    if (line.length > 1 || (line.length === 1 && line[0] !== RETURN)) onLine(line)
  }
  return (chunk: Buffer): void => {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      emit(chunk.subarray(from, at))
      from = at + 1
    }
    if (from === chunk.length) return
    if (heldBytes <= longest) held.push(chunk.subarray(from))
    heldBytes += chunk.length - from
  }
}

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
