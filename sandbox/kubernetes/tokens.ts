import { generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto'
import type { Store } from './store.ts'

export interface MintRequest {
  readonly namespace: string
  readonly serviceAccount: string
  readonly podName?: string
  readonly podUid?: string
  /** Default: the API server itself. */
  readonly audience?: string
  /** Default: an hour. */
  readonly expiresInSeconds?: number
}

interface Claims {
  readonly iss: string
  readonly aud: readonly string[]
  readonly exp: number
  readonly sub: string
  readonly 'kubernetes.io': {
    readonly namespace: string
    readonly serviceaccount: { readonly name: string; readonly uid: string }
    readonly pod?: { readonly name: string; readonly uid: string }
  }
}

/** Admits callers, and issues the service account tokens of pods (signed JWTs, ES256, like projected tokens). */
export interface Tokens {
  /** The administrator's bearer token. */
  admin(): string
  /** The old token gets 401 from now on. Returns the new one. */
  rotate(): string
  mint(request: MintRequest): string
  /** Whether a request with this Authorization header may use the API. A token for another audience may not. */
  admits(authorization: string | undefined): boolean
  /** The claims of a token, if this server issued it, it has not expired, and its pod still exists. */
  check(token: string): Claims | undefined
  jwks(): object
  readonly issuer: string
}

const ISSUER = 'https://kubernetes.default.svc'
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

export function createTokens(store: Store): Tokens {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const fresh = () => `sandbox-${randomBytes(24).toString('base64url')}`
  let admin = fresh()

  const signature = (text: string) =>
    sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')

  const check = (token: string): Claims | undefined => {
    const [head, body, mark, ...more] = token.split('.')
    if (!head || !body || !mark || more.length > 0) return undefined
    const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
    if (!verify('sha256', Buffer.from(`${head}.${body}`), key, Buffer.from(mark, 'base64url')))
      return undefined
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Claims
    if (claims.exp * 1000 <= store.now()) return undefined
    const { namespace, pod } = claims['kubernetes.io']
    // The token is bound to the pod object: valid while the pod is Terminating, invalid once the pod is gone.
    if (pod && store.get('pods', namespace, pod.name)?.metadata.uid !== pod.uid) return undefined
    return claims
  }

  return {
    admin: () => admin,
    rotate() {
      admin = fresh()
      return admin
    },
    mint({ namespace, serviceAccount, podName, podUid, audience = ISSUER, expiresInSeconds = 3600 }) {
      const uid = store.get('serviceaccounts', namespace, serviceAccount)?.metadata.uid ?? ''
      const claims: Claims = {
        iss: ISSUER,
        aud: [audience],
        exp: Math.floor(store.now() / 1000) + expiresInSeconds,
        sub: `system:serviceaccount:${namespace}:${serviceAccount}`,
        'kubernetes.io': {
          namespace,
          serviceaccount: { name: serviceAccount, uid },
          ...(podName !== undefined && podUid !== undefined ? { pod: { name: podName, uid: podUid } } : {})
        }
      }
      const text = `${encode({ alg: 'ES256', kid: 'sandbox' })}.${encode(claims)}`
      return `${text}.${signature(text)}`
    },
    admits(authorization) {
      const token = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1]
      if (token === undefined) return false
      return token === admin || (check(token)?.aud.includes(ISSUER) ?? false)
    },
    check,
    jwks: () => ({
      keys: [{ ...publicKey.export({ format: 'jwk' }), use: 'sig', kid: 'sandbox', alg: 'ES256' }]
    }),
    issuer: ISSUER
  }
}
