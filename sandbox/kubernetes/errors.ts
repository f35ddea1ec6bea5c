import { qualified, type ResourceName } from './resources.ts'

/** A `v1.Status`: the API server's answer if it does not send an object. */
interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly code: number
}

interface ErrorExtras {
  readonly details?: Readonly<Record<string, unknown>>
  /** The value of the Retry-After header, seconds. */
  readonly retryAfterSeconds?: number
  /** The token to continue an expired list, without consistency. */
  readonly continue?: string
}

/** A refusal, with the code, reason and message of a real API server. */
export class ApiError extends Error {
  readonly code: number
  readonly reason: string
  readonly extras: ErrorExtras

  constructor(code: number, reason: string, message: string, extras: ErrorExtras = {}) {
    super(message)
    this.name = 'ApiError'
    this.code = code
    this.reason = reason
    this.extras = extras
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.extras.continue === undefined ? {} : { continue: this.extras.continue },
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.extras.details ? { details: this.extras.details } : {}),
      code: this.code
    }
  }
}

const about = (resource: ResourceName, name: string) => ({ details: { name, kind: resource } })

export const notFound = (resource: ResourceName, name: string): ApiError =>
  new ApiError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, about(resource, name))

export const alreadyExists = (resource: ResourceName, name: string): ApiError =>
  new ApiError(409, 'AlreadyExists', `${qualified(resource)} "${name}" already exists`, about(resource, name))

export const conflict = (resource: ResourceName, name: string, why: string): ApiError =>
  new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    about(resource, name)
  )

export const MODIFIED_MEANWHILE =
  'the object has been modified; please apply your changes to the latest version and try again'

export const badRequest = (message: string): ApiError => new ApiError(400, 'BadRequest', message)

export const invalid = (message: string): ApiError => new ApiError(422, 'Invalid', message)

export const forbidden = (message: string): ApiError => new ApiError(403, 'Forbidden', message)

export const tooOld = (asked: number, oldest: number): ApiError =>
  new ApiError(410, 'Expired', `too old resource version: ${asked} (${oldest})`)

/** The page token is older than the history. `again` continues at the same key, but at another version. */
export const continueExpired = (again: string): ApiError =>
  new ApiError(
    410,
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. You can start a new list ' +
      'without the continue parameter, or use the continue token in this response to retrieve the remainder of the ' +
      'results. Continuing with the provided token results in an inconsistent list - objects that were created, ' +
      'modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    { continue: again }
  )

export const tooLarge = (asked: number, current: number): ApiError =>
  new ApiError(504, 'Timeout', `Too large resource version: ${asked}, current: ${current}`, {
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
    retryAfterSeconds: 1
  })
