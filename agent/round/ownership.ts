import type { Drain } from '../rules/drain/drain.ts'
import { isOver } from '../rules/drain/eligible.ts'
import type { Millis } from '../rules/drain/facts.ts'
import { createBlindness } from './blindness.ts'
import type { Fates } from './entries/desired.ts'

/** Whether the agent may still assume that an address belongs to the old pod. */
interface AddressOwnership extends Fates {
  /** Called once per round. `live`: whether the watch of pods is live. */
  look(live: boolean, now: Millis): void
  /** Whether the watch was live at the last `look`. */
  isLive(): boolean
  /** Whether the addresses of this drain still belong to its pod, as far as the agent can know. */
  isSure(drain: Drain, now: Millis): boolean
}

/**
 * A new pod may get an ended pod's address within a second, and must then get requests at once. The watch of pods shows which pod has the
 * address. A held hook proves that the pod's containers still run and have it.
 *
 * While the watch is down, the agent cannot know whose an address is. So it removes no entry: requests would go to an address without a pod.
 * It puts and renews none either: another agent that sees may have removed the entry. An entry lasts long enough for such a time.
 *
 * If only some namespaces are watched, the address may belong to a pod of another namespace once the pod is gone or has finished, and no
 * watch shows that. Then the entry is removed when the pod's grace is over.
 */
export function createAddressOwnership(
  someNamespacesOnly: boolean,
  serverBehindMs: () => number
): AddressOwnership {
  let isLive = false
  const watch = createBlindness()
  const hasLeft = ({ phase, pod }: Drain) => someNamespacesOnly && (phase === 'gone' || isOver(pod))
  /** Whether the pod's containers may still serve requests in flight. */
  const mayStillServe = ({ pod, since }: Drain, now: Millis) =>
    !isOver(pod) &&
    now < (pod.deletionAt === undefined ? since + pod.graceMs : pod.deletionAt + serverBehindMs())
  return {
    look(live, now) {
      isLive = live
      watch.look(live, now)
    },
    isLive: () => isLive,
    isSure: (drain, now) => !hasLeft(drain) && (drain.phase === 'draining' || !watch.isBlind(now)),
    ofDrain(drain, isHeld, now) {
      if (hasLeft(drain) && !mayStillServe(drain, now)) return 'drop'
      return isLive || isHeld ? 'put' : 'keep'
    },
    ofGone: () => (someNamespacesOnly ? 'drop' : isLive ? 'put' : 'keep')
  }
}
