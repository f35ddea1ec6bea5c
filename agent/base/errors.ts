/**
 * All failures, each with a stable code and a sentence with the remedy. Other code tests a failure with functions (`isGone`, …), so
 * only this file knows the meaning of HTTP status numbers.
 */
export const ERRORS = {
  ADMIN_UNREACHABLE:
    'no connection to the Admin API: check apisix.admin.url, the Service behind it and any NetworkPolicy',
  ADMIN_TIMEOUT:
    'the Admin API did not answer in time: look at its etcd (a black-holed etcd answers nothing for minutes) or raise apisix.admin.timeout',
  ADMIN_DENIED:
    'the Admin API refused us: check apisix.admin.keyFile (401) and the allow list deployment.admin.allow_admin of APISIX (403)',
  ADMIN_GONE: 'the object does not exist in APISIX any more',
  ADMIN_UNSUPPORTED: 'this APISIX does not have that kind of object',
  ADMIN_CONFLICT: 'another writer changed the object at the same moment: it is tried again',
  ADMIN_PRECONDITION:
    'something between us and APISIX adds a precondition header such as If-Match: nginx answers 412 after it has applied the write; remove the header in that proxy',
  ADMIN_UNAVAILABLE:
    'the Admin API cannot reach its store or is failing: look at etcd and at the error log of APISIX',
  ADMIN_REFUSED: 'the Admin API refused the request as invalid',
  ADMIN_GARBLED:
    'the answer is not what an Admin API gives: check that apisix.admin.url points to one and not to a proxy or a login page',
  ADMIN_UNSTEADY: 'objects were added or deleted between all pages of the listing: it is tried again',
  ADMIN_TOO_LARGE: 'the answer is larger than we accept: split what is this large, or check apisix.admin.url',

  CONTROL_UNREACHABLE:
    'no connection to the Control API: check apisix.control.port, and that APISIX listens for it on more than 127.0.0.1 (chart: control.service.ip 0.0.0.0)',
  CONTROL_TIMEOUT: 'the Control API did not answer in time: the gateway is overloaded or frozen',
  CONTROL_UNAVAILABLE: 'the Control API failed: look at the error log of APISIX',
  CONTROL_REFUSED:
    'the Control API refused the request: check that apisix.control.port is the Control API of APISIX',
  CONTROL_GARBLED:
    'the answer is not what a Control API gives: check that apisix.control.port is the Control API of APISIX',
  CONTROL_TOO_LARGE: 'the configuration that the Control API shows is larger than we accept',

  BARRIER_UNREACHABLE:
    'no connection to the barrier: load the plugin in this gateway, or check apisix.barrier.port and any NetworkPolicy',
  BARRIER_TIMEOUT: 'the barrier did not answer in time: the gateway is overloaded or frozen',
  BARRIER_DENIED:
    'the barrier refused our token: give plugin and agent the same one (apisix.barrier.tokenFile)',
  BARRIER_ABSENT:
    'something answers on the barrier port that is not the barrier: load the plugin in this gateway, or check apisix.barrier.port',
  BARRIER_VERSION: 'agent and plugin have different wire versions: upgrade the older one',
  BARRIER_FULL: 'the dictionary of the barrier is full: enlarge its custom_lua_shared_dict',
  BARRIER_TOO_LARGE: 'the answer is larger than we accept',
  BARRIER_REFUSED: 'the barrier refused the request as invalid',
  BARRIER_UNAVAILABLE: 'the barrier failed inside the gateway: look at the error log of APISIX',
  BARRIER_GARBLED: 'the answer is not what a barrier gives: check apisix.barrier.port',

  ABORTED: 'given up because it was not needed any more'
} as const

export type ErrorCode = keyof typeof ERRORS

/** The API that was called; the first part of the code. */
export type Api = 'ADMIN' | 'CONTROL' | 'BARRIER'

/** A failure with a code. `message` is fit for an operator and never holds headers, keys or tokens. */
export class CodedError extends Error {
  override readonly name = 'CodedError'
  readonly code: ErrorCode
  readonly status: number | undefined
  /** The server's message (`error_msg`), shortened; empty if there was none. */
  readonly serverMessage: string
  /** The system's code for a failed connection (`ECONNREFUSED`); `undefined` for any other failure. */
  readonly network: string | undefined
  /** The message without the place of the call, so that equal failures of several places can be reported together. */
  readonly meaning: string

  /** @param more.meaning replaces the sentence of the code, if more is known */
  constructor(
    code: ErrorCode,
    detail: string,
    more: {
      status?: number
      serverMessage?: string
      network?: string | undefined
      meaning?: string
      cause?: unknown
    } = {}
  ) {
    const meaning = more.meaning || ERRORS[code]
    super(detail === '' ? meaning : `${detail}: ${meaning}`, { cause: more.cause })
    this.code = code
    this.meaning = meaning
    this.status = more.status
    this.serverMessage = more.serverMessage ?? ''
    this.network = more.network
  }
}

/** The text of a failure without the place of the call, so that an equal failure of many gateways is reported once. */
export function meaningOf(error: unknown): string {
  if (error instanceof CodedError) return `${error.network ?? error.status ?? error.code}: ${error.meaning}`
  return error instanceof Error ? error.message : String(error)
}

/** The meaning of each status; the first match wins. Some rows also test the words of the body. */
const MEANING: Readonly<Record<Api, readonly (readonly [status: number, code: ErrorCode, says?: RegExp])[]>> =
  {
    ADMIN: [
      [401, 'ADMIN_DENIED'],
      [403, 'ADMIN_DENIED'],
      [404, 'ADMIN_GONE', /Key not found/],
      [404, 'ADMIN_UNSUPPORTED', /Unsupported resource type/],
      [404, 'ADMIN_GARBLED'],
      [409, 'ADMIN_CONFLICT'],
      [412, 'ADMIN_PRECONDITION'],
      [429, 'ADMIN_UNAVAILABLE'],
      [503, 'ADMIN_CONFLICT', /value changed before overwritten/]
    ],
    CONTROL: [[404, 'CONTROL_REFUSED']],
    BARRIER: [
      [401, 'BARRIER_DENIED'],
      [403, 'BARRIER_DENIED'],
      [404, 'BARRIER_ABSENT'],
      [405, 'BARRIER_ABSENT'],
      [409, 'BARRIER_VERSION'],
      [507, 'BARRIER_FULL']
    ]
  }

/** The code for an unexpected answer. */
export function codeForStatus(api: Api, status: number, body: string): ErrorCode {
  const row = MEANING[api].find(([at, , says]) => at === status && (says?.test(body) ?? true))
  if (row) return row[1]
  if (status >= 500) return `${api}_UNAVAILABLE`
  return status >= 400 ? `${api}_REFUSED` : `${api}_GARBLED`
}

const codeOf = (error: unknown): ErrorCode | undefined =>
  error instanceof CodedError ? error.code : undefined

/** The object does not exist. A removal counts this as success. */
export const isGone = (error: unknown): boolean => codeOf(error) === 'ADMIN_GONE'

/** Inside APISIX, another writer wrote between read and write, so nothing was written. */
export const isConflict = (error: unknown): boolean => codeOf(error) === 'ADMIN_CONFLICT'

/** The agent's credentials are refused: a retry changes nothing. */
export const isDenied = (error: unknown): boolean =>
  codeOf(error) === 'ADMIN_DENIED' || codeOf(error) === 'BARRIER_DENIED'

/** Agent and plugin have different wire versions. The failure says which of them is older. */
export const isOtherWire = (error: unknown): boolean => codeOf(error) === 'BARRIER_VERSION'

/** Nothing of that kind exists in this installation (an older APISIX, stream proxying off). */
export const isUnsupported = (error: unknown): boolean =>
  codeOf(error) === 'ADMIN_UNSUPPORTED' ||
  (error instanceof CodedError && isRefused(error) && error.serverMessage.includes('stream mode is disabled'))

/** APISIX refused the request (400): the agent's copy of the object is wrong, so it reads the object again. */
export const isRefused = (error: unknown): boolean => codeOf(error) === 'ADMIN_REFUSED'

/** Nothing listens at that port: the machine refused the connection. */
export const isConnectionRefused = (error: unknown): boolean =>
  error instanceof CodedError && error.network === 'ECONNREFUSED'
