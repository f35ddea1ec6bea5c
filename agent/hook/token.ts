import { errors, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import { refuse, type Refusal } from '../round/hold/refusal.ts'

/** The audience that a hook's token must have. No other service accepts this audience, so a stolen token is useless elsewhere. */
const AUDIENCE = 'apisix-drain'

/** The pod that Kubernetes issued a token to. */
interface TokenPod {
  readonly ok: true
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** The algorithms that an API server can sign with (`--service-account-signing-key-file`). `none` and shared secrets are left out. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512']
/** The longest accepted token, in characters. A projected token has about 1,200. A token that is too long is refused unread. */
const LONGEST = 6144
/** Tolerated difference between the clocks of the API server and the agent, in seconds. */
const TOLERANCE_S = 10

/** https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#schema-for-service-account-private-claims */
const claims = z.looseObject({
  'kubernetes.io': z.looseObject({
    namespace: z.string(),
    pod: z.looseObject({ name: z.string(), uid: z.string() }).optional()
  })
})

/** The keys could not be read, so no token can be checked. */
export class NoKeys extends Error {
  override readonly name = 'NoKeys'
}

/**
 * The pod that a projected ServiceAccount token was issued to. A refusal never quotes the token.
 *
 * @param keys finds the key by `kid`; throws NoKeys if no keys could be read
 * @param now ms
 */
export async function readToken(
  token: string | undefined,
  keys: JWTVerifyGetKey,
  now: number
): Promise<TokenPod | Refusal> {
  if (token === undefined) {
    return refuse(
      'unauthorized',
      `send the pod's own token as Authorization: Bearer: a projected serviceAccountToken with audience ${AUDIENCE}`
    )
  }
  if (token.length > LONGEST) return refuse('unauthorized', `the token is longer than ${LONGEST} characters`)
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: ALGORITHMS,
      audience: AUDIENCE,
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(now),
      requiredClaims: ['exp']
    })
    const { success, data } = claims.safeParse(payload)
    if (!success) return refuse('unauthorized', 'the token is no ServiceAccount token')
    const { namespace, pod } = data['kubernetes.io']
    if (!pod) {
      return refuse(
        'forbidden',
        'the token is bound to no pod: mount a projected one, do not make one by hand'
      )
    }
    return { ok: true, namespace, name: pod.name, uid: pod.uid }
  } catch (err) {
    if (err instanceof NoKeys) return refuse('cannot-ask-kubernetes', err.message)
    return refuse('unauthorized', whatIsWrong(err))
  }
}

function whatIsWrong(err: unknown): string {
  if (err instanceof errors.JWTExpired) return 'the token has expired: read the file again with every hook'
  if (err instanceof errors.JWTClaimValidationFailed && err.claim === 'aud')
    return `the token is not for the audience ${AUDIENCE}`
  if (err instanceof errors.JWTClaimValidationFailed) return `the token is not valid: ${err.claim}`
  if (err instanceof errors.JWKSNoMatchingKey || err instanceof errors.JWSSignatureVerificationFailed)
    return 'the token was not signed by this cluster'
  if (err instanceof errors.JOSEAlgNotAllowed) return 'the token is signed in a way that Kubernetes does not'
  return 'the token cannot be read'
}
