import { badRequest } from './errors.ts'
import type { FaultState } from './faults.ts'
import type { Request, Response } from './listener.ts'
import { isFields } from './patch.ts'
import { bodyOf, respond } from './respond.ts'
import { parseTarget, type Verb } from './target.ts'
import type { Store } from './store.ts'
import type { Tokens } from './tokens.ts'

interface Api {
  readonly store: Store
  readonly tokens: Tokens
  readonly faults: FaultState
}

const POD_NAME = 'authentication.kubernetes.io/pod-name'
const POD_UID = 'authentication.kubernetes.io/pod-uid'

/** `status` of a TokenReview. */
function reviewToken(tokens: Tokens, token: string, audiences: readonly string[]): object {
  const claims = tokens.check(token)
  if (!claims)
    return { authenticated: false, user: {}, error: '[invalid bearer token, Token has been invalidated]' }
  const wanted = audiences.length > 0 ? audiences : [tokens.issuer]
  const shared = wanted.filter(audience => claims.aud.includes(audience))
  if (shared.length === 0)
    return {
      authenticated: false,
      user: {},
      error: `[invalid bearer token, token audiences ${JSON.stringify(claims.aud)} is invalid for the target audiences ${JSON.stringify(wanted)}]`
    }
  const { namespace, serviceaccount, pod } = claims['kubernetes.io']
  return {
    authenticated: true,
    user: {
      username: claims.sub,
      uid: serviceaccount.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      ...(pod ? { extra: { [POD_NAME]: [pod.name], [POD_UID]: [pod.uid] } } : {})
    },
    audiences: shared
  }
}

const field = (value: unknown, key: string): unknown => (isFields(value) ? value[key] : undefined)
const string = (value: unknown): string => (typeof value === 'string' ? value : '')
const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(one => typeof one === 'string') : []

function answer(api: Api, path: string, spec: unknown): object | undefined {
  if (path === '/apis/authentication.k8s.io/v1/tokenreviews')
    return reviewToken(api.tokens, string(field(spec, 'token')), strings(field(spec, 'audiences')))
  if (path === '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews') {
    const asked = field(spec, 'resourceAttributes')
    const verb = string(field(asked, 'verb')) as Verb
    return api.faults.denies(verb, string(field(asked, 'resource')))
      ? { allowed: false, reason: 'sandbox fault' }
      : { allowed: true, reason: 'RBAC: allowed by the sandbox' }
  }
  const target = parseTarget(path)
  if (target?.resource !== 'serviceaccounts' || target.subresource !== 'token') return undefined
  const bound = field(spec, 'boundObjectRef')
  const [audience] = strings(field(spec, 'audiences'))
  const expiresInSeconds = Number(field(spec, 'expirationSeconds') ?? 3600)
  const podName = string(field(bound, 'name'))
  return {
    token: api.tokens.mint({
      namespace: target.namespace ?? 'default',
      serviceAccount: target.name ?? 'default',
      expiresInSeconds,
      ...(audience === undefined ? {} : { audience }),
      ...(podName === '' ? {} : { podName, podUid: string(field(bound, 'uid')) })
    }),
    expirationTimestamp: new Date(api.store.now() + expiresInSeconds * 1000).toISOString()
  }
}

const isReview = (path: string): boolean =>
  /^\/apis\/(authentication|authorization)\.k8s\.io\/v1\/[a-z]+$/.test(path) ||
  /^\/api\/v1\/namespaces\/[^/]+\/serviceaccounts\/[^/]+\/token$/.test(path)

/** Answers TokenReview, SelfSubjectAccessReview and TokenRequest, which clients send as a create. Returns false for any other request. */
export async function review(api: Api, path: string, request: Request, response: Response): Promise<boolean> {
  if (!isReview(path)) return false
  const text = await bodyOf(request)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw badRequest('the body of the request was not valid JSON')
  }
  const status = answer(api, path, field(body, 'spec'))
  if (!status || !isFields(body)) return false
  respond(response, 201, { ...body, status })
  return true
}
