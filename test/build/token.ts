import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose'
import type { PodFact } from '../../agent/rules/drain/facts.ts'

/** A signer of ServiceAccount tokens, like the API server. */
export interface Signer {
  readonly jwk: JWK
  /** Signs claims that are correct for this pod, except for `differs`. `exp` is 10 minutes after `now` (ms). */
  sign(pod: PodFact, now: number, differs?: Record<string, unknown>): Promise<string>
}

/** A token as Kubernetes 1.36 makes it for a projected volume. */
export const claimsOf = (pod: PodFact, now: number): Record<string, unknown> => ({
  aud: ['apisix-drain'],
  exp: Math.floor(now / 1000) + 600,
  iat: Math.floor(now / 1000),
  nbf: Math.floor(now / 1000),
  iss: 'https://kubernetes.default.svc',
  sub: `system:serviceaccount:${pod.namespace}:default`,
  'kubernetes.io': {
    namespace: pod.namespace,
    pod: { name: pod.name, uid: pod.uid },
    serviceaccount: { name: 'default', uid: 'uid-default' }
  }
})

export async function createSigner(kid = 'first', alg: 'RS256' | 'ES256' = 'RS256'): Promise<Signer> {
  const { privateKey, publicKey }: { privateKey: CryptoKey; publicKey: CryptoKey } =
    await generateKeyPair(alg)
  const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
  return {
    jwk,
    sign: (pod, now, differs = {}) =>
      new SignJWT({ ...claimsOf(pod, now), ...differs }).setProtectedHeader({ alg, kid }).sign(privateKey)
  }
}
