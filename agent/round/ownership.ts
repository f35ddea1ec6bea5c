import type { Drain } from '../rules/drain/drain.ts'
import { isOver } from '../rules/drain/eligible.ts'
import type { Millis } from '../rules/drain/facts.ts'
import { createBlindness } from './blindness.ts'

/** Whether the agent may still assume that an address belongs to the old pod. */
interface AddressOwnership {
  /** Called once per round. `live`: whether the watch of pods is live. */
  look(live: boolean, now: Millis): void
  /** Whether the watch was live at the last `look`. */
  isLive(): boolean
  /** Whether the addresses of this drain still belong to its pod, as far as the agent can know. */
  isSure(drain: Drain, now: Millis): boolean
  /** Whether the pod's grace still runs. Until its end, the pod's containers may serve requests in flight, even if the watch is down. */
  mayStillServe(drain: Drain, serverBehindMs: number, now: Millis): boolean
  /** Whether addresses of gone pods can be distinguished from those of new pods. */
  isSureOfGone(now: Millis): boolean
}

/**
 * A new pod may get an ended pod's address within a second, and must then get requests at once. The watch of pods shows which pod has the
 * address. So a drain whose hook was answered is not guarded any longer:
 * - if that watch has been down for a while: the pod may be gone, and another pod may have its address;
 * - once the pod is gone or has finished, if only some namespaces are watched: the address may belong to a pod of another namespace.
 * Before the answer, the pod's containers still run and have the address. For a pod with a final phase, only a held hook proves that its
 * containers still run.
 */
export function createAddressOwnership(someNamespacesOnly: boolean): AddressOwnership {
  let isLive = false
  const watch = createBlindness()
  const hasLeft = ({ phase, pod, witnesses }: Drain) =>
    someNamespacesOnly &&
    (phase === 'gone' || (isOver(pod) && !(phase === 'draining' && witnesses.hook !== undefined)))
  return {
    look(live, now) {
      isLive = live
      watch.look(live, now)
    },
    isLive: () => isLive,
    isSure: (drain, now) => !hasLeft(drain) && (drain.phase === 'draining' || !watch.isBlind(now)),
    mayStillServe(drain, serverBehindMs, now) {
      const { pod, since } = drain
      const end = pod.deletionAt === undefined ? since + pod.graceMs : pod.deletionAt + serverBehindMs
      return now < end && !(isOver(pod) && hasLeft(drain))
    },
    isSureOfGone: now => !someNamespacesOnly && !watch.isBlind(now)
  }
}
