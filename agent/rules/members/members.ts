import { isOver } from '../drain/eligible.ts'
import { nodeKey, type Endpoint, type EndpointFact, type NodeKey, type PodFact } from '../drain/facts.ts'
import type { Claim } from './claim.ts'

/** The facts about the pods behind endpoints. */
interface PodsKnown {
  /** `undefined`: no pod of this uid is known (not yet, or not any more; see `isGone`). */
  pod(uid: NonNullable<Endpoint['podUid']>): PodFact | undefined
  /** Whether the pod's object was seen to be deleted. A slice that still lists it is late. */
  isGone(uid: NonNullable<Endpoint['podUid']>): boolean
  /** Whether a drain removes this pod. Until the drain is over, the pod is no member, whatever a slice shows. */
  isDraining(uid: NonNullable<Endpoint['podUid']>): boolean
}

/**
 * The nodes that a claimed holder should list: every endpoint that is ready on the claimed port, each once. It reads all slices of the
 * Service, of both families. `ready` already includes publishNotReadyAddresses. A `terminating` endpoint is never a member. Endpoints
 * with a host name (FQDN) are no pods and are left out.
 */
export function membersOf(
  claim: Claim,
  slices: readonly EndpointFact[],
  pods: PodsKnown
): ReadonlySet<NodeKey> {
  const members = new Set<NodeKey>()
  for (const slice of slices) {
    if (slice.family === 'FQDN') continue
    const port = slice.ports.find(({ name }) => name === claim.port)?.port
    if (port === undefined) continue
    for (const endpoint of slice.endpoints) {
      if (isMember(endpoint, pods)) members.add(nodeKey(endpoint.address, port))
    }
  }
  return members
}

function isMember(endpoint: Endpoint, pods: PodsKnown): boolean {
  const { podUid: uid } = endpoint
  if (endpoint.terminating || !endpoint.ready) return false
  // A user wrote an endpoint without a pod by hand.
  if (uid === undefined) return true
  if (pods.isGone(uid) || pods.isDraining(uid)) return false
  const pod = pods.pod(uid)
  // The watch of slices can be ahead of the watch of pods, so the pod's own event follows.
  return pod === undefined || (pod.deletionAt === undefined && !isOver(pod))
}
