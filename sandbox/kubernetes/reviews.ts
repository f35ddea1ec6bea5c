import { badRequest } from './errors.ts'
import type { FaultState } from './faults.ts'
import type { Request, Response } from './listener.ts'
import { isFields } from './patch.ts'
import { bodyOf, respond } from './respond.ts'
import type { Verb } from './target.ts'

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'

const field = (value: unknown, key: string): unknown => (isFields(value) ? value[key] : undefined)
const string = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Answers a SelfSubjectAccessReview, which clients send as a create. Returns false for any other request. */
export async function review(
  faults: FaultState,
  path: string,
  request: Request,
  response: Response
): Promise<boolean> {
  if (path !== PATH) return false
  const text = await bodyOf(request)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw badRequest('the body of the request was not valid JSON')
  }
  if (!isFields(body)) return false
  const asked = field(body['spec'], 'resourceAttributes')
  const denied = faults.denies(string(field(asked, 'verb')) as Verb, string(field(asked, 'resource')))
  const status = denied
    ? { allowed: false, reason: 'sandbox fault' }
    : { allowed: true, reason: 'RBAC: allowed by the sandbox' }
  respond(response, 201, { ...body, status })
  return true
}
