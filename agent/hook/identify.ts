import type { PodFact } from '../rules/drain/facts.ts'
import { refuse, type Holds, type Refusal } from '../round/hold/hooks.ts'
import type { Hook } from '../rules/drain/drain.ts'
import { DURATION_FORM, parseDuration } from '../rules/drain/annotations.ts'

/** How a caller identifies itself. */
export interface Caller extends Pick<PrestopQuery, 'named' | 'uid'> {
  /** Normalised (`guard.ts`). */
  readonly address: string
}

type Identity = { readonly ok: true; readonly pod: PodFact } | Refusal

/** The remedy in refusals of a caller whose address may be that of a proxy or a NAT. */
const NAME_THE_POD =
  'source NAT and proxies call with such an address too; add ?namespace=&pod= to the call, and use no proxy (curl --noproxy "*")'

/**
 * Returns the pod of a hook, or a refusal. A pod can only drain itself: if the call names a pod, the caller's address must not
 * contradict the name.
 *
 * | the address belongs to     | without a name                                        | with `?uid=`, `?namespace=&pod=`                |
 * | -------------------------- | ----------------------------------------------------- | ----------------------------------------------- |
 * | a pod                      | that pod                                              | must be that pod                                |
 * | pods that share their host | refused                                               | one of them, or any pod (the kubelet calls too) |
 * | no known pod               | the pod to which Kubernetes gives the address, or 404 | the pod with this address, or any pod           |
 *
 * "Any pod" needs `namespace` and `pod`. Such a call cannot remove a serving pod: it is believed only where Kubernetes reports
 * that the pod ends. All callers whose packets a host forwards share its address, so that address alone identifies
 * no pod.
 */
export async function identify(
  caller: Caller,
  pods: Pick<Holds, 'findByIp' | 'freshByIp' | 'find'>,
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
        `${caller.address} belongs to ${label(owner)}, and a pod can only drain itself; correct namespace and pod, and use no proxy`
      )
    }
    const neighbour = there.find(pod => isNamed(pod, named))
    return neighbour ? { ok: true, pod: neighbour } : fromKubernetes(named)
  }

  async function fromAddress(): Promise<Identity> {
    const { address, uid } = caller
    const found = there.length > 0 ? there : await asked(() => pods.freshByIp(address, signal), address)
    if ('ok' in found) return found
    const candidates = found.filter(isThere)
    const own = candidates.find(pod => pod.uid === uid)
    if (own) return { ok: true, pod: own }
    const [only, ...more] = candidates
    if (!only) {
      return refuse('unknown-pod', `no pod with the address ${address} is known; ${NAME_THE_POD}`)
    }
    const isOfHost = candidates.some(pod => pod.hostNetwork)
    if (isOfHost) return refuse('not-named', `${address} is the address of a host; ${NAME_THE_POD}`)
    if (more.length === 0) return { ok: true, pod: only }
    return refuse('not-named', `${address} is shared by ${more.length + 1} pods; ${NAME_THE_POD}`)
  }

  async function fromKubernetes(named: NonNullable<Caller['named']>): Promise<Identity> {
    const pod = await asked(() => pods.find(named.namespace, named.name, signal), path(named))
    if (pod && 'ok' in pod) return pod
    if (!pod) return refuse('unknown-pod', `Kubernetes knows no pod ${path(named)}; check namespace and pod`)
    return { ok: true, pod }
  }

  /** Returns the API server's answer, or a refusal if the request failed. */
  async function asked<T>(ask: () => Promise<T>, about: string): Promise<T | Refusal> {
    try {
      return await ask()
    } catch (err) {
      if (signal.aborted) throw err
      return refuse('cannot-ask-kubernetes', `the API server could not be asked about ${about}; try again`)
    }
  }
}

/** A pod whose containers have ended cannot call, and its address may already belong to another pod. */
const isThere = (pod: PodFact) => pod.phase !== 'Succeeded' && pod.phase !== 'Failed'

const isNamed = (pod: PodFact, named: NonNullable<Caller['named']>) =>
  pod.namespace === named.namespace && pod.name === named.name

const label = (pod: PodFact) => `${pod.namespace}/${pod.name}`
const path = (named: NonNullable<Caller['named']>) => `${named.namespace}/${named.name}`

/** The parameters of a hook's call. All of them are optional. */
interface PrestopQuery {
  readonly ok: true
  readonly times: Pick<Hook, 'timeoutMs' | 'sleepMs' | 'atLeastMs'>
  readonly named: { readonly namespace: string; readonly name: string } | undefined
  readonly uid: string | undefined
  readonly container: string | undefined
}

const TIMES = ['timeout', 'sleep', 'atLeast'] as const
const KNOWN = [...TIMES, 'namespace', 'pod', 'uid', 'container']
/** RFC 1123 subdomain, the form of pod names; a namespace is shorter. A text of another form is refused without a look-up. */
const KUBERNETES_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/
const UID = /^[A-Za-z0-9-]{1,128}$/

/** The query of `/v1/prestop`. A wrong hook should fail in its first test, so unknown parameters are refused. */
export function parseQuery(query: URLSearchParams): PrestopQuery | Refusal {
  const problems: string[] = []
  const unknown = [...query.keys()].find(key => !KNOWN.includes(key))
  if (unknown !== undefined)
    problems.push(`${printable(unknown)} is no parameter; there are ${KNOWN.join(', ')}`)
  for (const key of KNOWN) if (query.getAll(key).length > 1) problems.push(`${key} is given more than once`)
  const [timeoutMs, sleepMs, atLeastMs] = TIMES.map(key => {
    const text = query.get(key)
    const ms = text === null ? undefined : parseDuration(text)
    if (text !== null && ms === undefined) problems.push(`${key} must be ${DURATION_FORM}`)
    return ms
  })
  if (timeoutMs === 0) problems.push('timeout must be longer than 0')
  const [namespace, name, uid] = [query.get('namespace'), query.get('pod'), query.get('uid')]
  if ((namespace === null) !== (name === null))
    problems.push('namespace and pod go together; give both or none')
  for (const key of ['namespace', 'pod', 'container'])
    if (!KUBERNETES_NAME.test(query.get(key) ?? 'none'))
      problems.push(`${key} is no name that Kubernetes allows`)
  if (uid !== null && !UID.test(uid)) problems.push('uid is no uid')

  if (problems.length > 0) return refuse('bad-request', problems.join('; '))
  return {
    ok: true,
    times: { timeoutMs, sleepMs, atLeastMs },
    named: namespace !== null && name !== null ? { namespace, name } : undefined,
    uid: uid ?? undefined,
    container: query.get('container') ?? undefined
  }
}

const printable = (text: string) => JSON.stringify(text.slice(0, 40))
