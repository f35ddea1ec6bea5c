import type { JWTVerifyGetKey } from 'jose'
import type { Holds } from '../round/hold/holds.ts'
import type { Caller, Identity } from './identify.ts'
import { refuse } from '../round/hold/refusal.ts'
import { readToken } from './token.ts'

interface TokenCaller extends Pick<Caller, 'named' | 'uid'> {
  /** The part after `Bearer`. */
  readonly token: string | undefined
}

/**
 * Returns the pod of a hook if `serve.auth` is `token`: the pod with the uid for which Kubernetes issued the token. A name or uid in
 * the call must match this pod. The caller's address does not count.
 *
 * @param now ms
 */
export async function identifyByToken(
  { token, named, uid }: TokenCaller,
  pods: Pick<Holds, 'find'>,
  keys: JWTVerifyGetKey,
  now: number,
  signal: AbortSignal
): Promise<Identity> {
  const shown = await readToken(token, keys, now)
  if (!shown.ok) return shown
  const path = `${shown.namespace}/${shown.name}`
  const isOther = named && (named.namespace !== shown.namespace || named.name !== shown.name)
  if (isOther || (uid !== undefined && uid !== shown.uid)) {
    return refuse('forbidden', `the token is that of ${path}, and a pod can only drain itself`)
  }
  try {
    const pod = await pods.find(shown.namespace, shown.name, signal, shown.uid)
    if (!pod) return refuse('unknown-pod', `Kubernetes knows no pod ${path}: the pod of this token is gone`)
    if (pod.uid === shown.uid) return { ok: true, pod, named: true }
    return refuse('forbidden', `${path} has another uid now: the pod of this token is gone`)
  } catch (err) {
    if (signal.aborted) throw err
    return refuse('cannot-ask-kubernetes', `the API server could not be asked about ${path}; try again`)
  }
}
