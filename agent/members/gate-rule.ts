import { formatDuration } from '../drain/duration.ts'
import type { Millis } from '../drain/facts.ts'
import type { Arrival } from './arrivals.ts'

/** What is known of a pod that only our readiness gate keeps from being Ready. */
export interface WaitingPod {
  /** Since when it was seen to wait. */
  readonly since: Millis
  readonly arrival: Pick<Arrival, 'at' | 'why' | 'holders'>
  /** What Kubernetes, its gateways and APISIX say is known, and as of now. */
  readonly known: boolean
  /** Its node cannot be told from those of its neighbours. */
  readonly sharesAddress: boolean
  /** Its place in EndpointSlices. `ready`: the Service publishes what is not Ready. */
  readonly endpoint: 'none' | 'not-ready' | 'ready'
  /** `sync` lists it in some holder, or is about to. */
  readonly synced: boolean
  /** Why `sync` does not do what its Services ask for. */
  readonly problems: readonly string[]
}

type GateDecision =
  | { readonly kind: 'wait'; readonly why: string }
  | { readonly kind: 'open'; readonly reason: GateReason; readonly message: string }

/** Of the condition, where it is True: every gateway routes to the pod, or it was not to be held any longer. */
export type GateReason = 'Routed' | 'NobodyLists' | 'WaitedTooLong'

/**
 * Whether the gate of a pod is to be opened. It is never shut again: a pod that serves is not taken out by us.
 *
 * An owner that lists ready endpoints only would wait for the pod as the pod for it. Where nobody else is known to list it
 * there is nothing to wait for; as long as no slice has it, one may be on its way.
 */
export function decideGate(pod: WaitingPod, failOpenMs: number, now: Millis): GateDecision {
  const { arrival, known, endpoint, synced, problems } = pod
  if (pod.sharesAddress)
    return open('NobodyLists', 'it shares the address of its host: its node cannot be told from others')
  if (known && arrival.at !== undefined)
    return open('Routed', `every gateway routes to it in ${arrival.holders.map(({ key }) => key).join(', ')}`)
  const why = known ? arrival.why : 'not all of Kubernetes, gateways and APISIX was heard of'
  if (now >= pod.since + failOpenMs)
    return open('WaitedTooLong', `not in every gateway after ${formatDuration(failOpenMs)}: ${why}`)
  if (known && endpoint === 'not-ready' && !synced && arrival.holders.length === 0)
    return open(
      'NobodyLists',
      problems.length > 0
        ? `no upstream will list it before it is Ready: ${problems.join('; ')}`
        : 'no upstream will list it before it is Ready: its Service is neither synced nor publishes not-ready addresses'
    )
  return { kind: 'wait', why: endpoint === 'none' ? `${why}; no EndpointSlice lists it` : why }
}

const open = (reason: GateReason, message: string): GateDecision => ({ kind: 'open', reason, message })
