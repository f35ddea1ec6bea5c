import { formatDuration } from '../drain/duration.ts'
import type { Millis } from '../drain/facts.ts'
import type { Arrival } from './arrivals.ts'

/** The facts about a pod that only the agent's readiness gate keeps from being Ready. */
export interface WaitingPod {
  /** When the agent first saw the pod wait. */
  readonly since: Millis
  readonly arrival: Pick<Arrival, 'at' | 'why' | 'holders'>
  /** The state of Kubernetes, the gateways and APISIX is known and current. */
  readonly known: boolean
  /** Its node cannot be distinguished from those of other pods. */
  readonly sharesAddress: boolean
  /** Its state in EndpointSlices. `ready`: the Service publishes addresses that are not Ready. */
  readonly endpoint: 'none' | 'not-ready' | 'ready'
  /** `sync` lists it in some holder, or is about to. */
  readonly synced: boolean
  /** Why `sync` does not follow the claims of its Services. */
  readonly problems: readonly string[]
}

type GateDecision =
  | { readonly kind: 'wait'; readonly why: string }
  | { readonly kind: 'open'; readonly reason: GateReason; readonly message: string }

/** The reason of a condition that is True: every gateway routes to the pod, or the agent holds the pod no longer. */
export type GateReason = 'Routed' | 'NotListed' | 'WaitedTooLong'

/**
 * Whether to open the gate of a pod. The agent never closes it again, because it does not remove a pod that serves.
 *
 * An owner that lists only ready endpoints would wait for the pod, while the pod waits for the owner. So the gate opens if no writer is
 * known to list the pod before it is Ready. While no slice lists the pod, such a writer may still appear, so the pod waits longer.
 */
export function decideGate(pod: WaitingPod, failOpenMs: number, now: Millis): GateDecision {
  const { arrival, known, endpoint, synced, problems } = pod
  if (pod.sharesAddress)
    return open('NotListed', 'it shares the address of its host: its node cannot be told from others')
  if (known && arrival.at !== undefined)
    return open('Routed', `every gateway routes to it in ${arrival.holders.map(({ key }) => key).join(', ')}`)
  const why = known ? arrival.why : 'not all of Kubernetes, gateways and APISIX was heard of'
  if (now >= pod.since + failOpenMs)
    return open('WaitedTooLong', `not in every gateway after ${formatDuration(failOpenMs)}: ${why}`)
  if (known && endpoint === 'not-ready' && !synced && arrival.holders.length === 0)
    return open(
      'NotListed',
      problems.length > 0
        ? `no upstream will list it before it is Ready: ${problems.join('; ')}`
        : 'no upstream will list it before it is Ready: its Service is neither synced nor publishes not-ready addresses'
    )
  return { kind: 'wait', why: endpoint === 'none' ? `${why}; no EndpointSlice lists it` : why }
}

const open = (reason: GateReason, message: string): GateDecision => ({ kind: 'open', reason, message })
