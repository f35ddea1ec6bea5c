import type { PodFact } from '../drain/facts.ts'
import type { Holds } from './holds.ts'
import type { PrestopQuery } from './query.ts'
import { refuse, type Refusal } from './refusal.ts'

/** What a caller shows of itself. */
export interface Caller extends Pick<PrestopQuery, 'named' | 'uid'> {
  /** Normalised (`address.ts`). */
  readonly address: string
}

export type Identity = { readonly ok: true; readonly pod: PodFact } | Refusal

/**
 * Which pod a hook is for. A pod can only drain itself, and its address is what shows who it is:
 *
 * | the address belongs to     | without a name           | with `?namespace=&pod=`                    |
 * | -------------------------- | ------------------------ | ------------------------------------------ |
 * | a pod                      | that pod                 | must be that pod                           |
 * | pods that share their host | that pod if it is alone  | that pod, or any (the kubelet calls too)   |
 * | nobody we know             | as Kubernetes says, else 404 | the pod with this address, or any      |
 *
 * "Any" needs `trustedQuery`. It is no way to take a serving pod out: only a pod that Kubernetes says is Terminating is.
 */
export async function identify(
  caller: Caller,
  pods: Pick<Holds, 'findByIp' | 'askByIp' | 'find'>,
  trustedQuery: boolean,
  signal: AbortSignal
): Promise<Identity> {
  const there = pods.findByIp(caller.address).filter(isThere)
  const owners = there.filter(pod => !pod.hostNetwork)
  const identity = await choose()
  if (identity.ok && caller.uid !== undefined && identity.pod.uid !== caller.uid) {
    return refuse('forbidden', `${label(identity.pod)} has another uid now: the pod you name is gone`)
  }
  return identity

  async function choose(): Promise<Identity> {
    const { named } = caller
    if (!named) return fromAddress()
    const own = owners.find(pod => isNamed(pod, named))
    if (own) return { ok: true, pod: own }
    const [owner] = owners
    if (owner) {
      return refuse(
        'forbidden',
        `${caller.address} belongs to ${label(owner)}, and a pod can only drain itself; leave namespace and pod out or correct them`
      )
    }
    const neighbour = there.find(pod => isNamed(pod, named))
    return neighbour ? { ok: true, pod: neighbour } : fromKubernetes(named)
  }

  async function fromAddress(): Promise<Identity> {
    const known = owners.length > 0 ? owners : there
    const found =
      known.length > 0 ? known : await asked(() => pods.askByIp(caller.address, signal), caller.address)
    if ('ok' in found) return found
    const [only, ...more] = found.filter(isThere)
    if (!only) {
      return refuse(
        'unknown-pod',
        `no pod with the address ${caller.address} is known; if the call is not made from inside the pod (httpGet, host network), add ?namespace=&pod=`
      )
    }
    if (more.length === 0) return { ok: true, pod: only }
    return refuse(
      'bad-request',
      `${caller.address} is shared by ${more.length + 1} pods; add ?namespace=&pod= to say which one asks`
    )
  }

  async function fromKubernetes(named: NonNullable<Caller['named']>): Promise<Identity> {
    const pod = await asked(() => pods.find(named.namespace, named.name, signal), path(named))
    if (pod && 'ok' in pod) return pod
    if (!pod) return refuse('unknown-pod', `Kubernetes knows no pod ${path(named)}; check namespace and pod`)
    if (trustedQuery || pod.ips.includes(caller.address)) return { ok: true, pod }
    return refuse(
      'forbidden',
      `${caller.address} is not an address of ${path(named)}; call from inside the pod, or set serve.trustedQuery`
    )
  }

  /** What the API server says, or the refusal where it could not be asked. */
  async function asked<T>(ask: () => Promise<T>, about: string): Promise<T | Refusal> {
    try {
      return await ask()
    } catch (err) {
      if (signal.aborted) throw err
      return refuse('cannot-ask-kubernetes', `the API server could not be asked about ${about}; try again`)
    }
  }
}

/** Where its containers have ended nothing in it can call; its address may be another pod's by now. */
const isThere = (pod: PodFact) => pod.phase !== 'Succeeded' && pod.phase !== 'Failed'

const isNamed = (pod: PodFact, named: NonNullable<Caller['named']>) =>
  pod.namespace === named.namespace && pod.name === named.name

const label = (pod: PodFact) => `${pod.namespace}/${pod.name}`
const path = (named: NonNullable<Caller['named']>) => `${named.namespace}/${named.name}`
