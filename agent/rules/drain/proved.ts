import type { Proved, Unproved } from './ack.ts'
import type { Hook, Proven, Waiting } from './drain.ts'
import { formatDuration } from './duration.ts'
import type { Millis, PodFact } from './facts.ts'

/** A 200. It is made from a proof, so none exists without one. */
export function proved(hook: Hook, pod: PodFact, now: Millis, proof: Proven): Proved {
  const { grade, gateways, forced, places = null, why } = proof
  return {
    status: 200,
    result: 'drained',
    evidence: grade,
    places,
    noReplacement: forced,
    ...body(hook, pod, now, why, proof),
    gateways
  }
}

/** What a 503 says. */
export interface Said extends Pick<Unproved, 'why' | 'change'> {
  readonly result?: Unproved['result']
  readonly verdict?: Waiting
}

/** A 503, with a reason and a remedy. */
export function unproved(hook: Hook, pod: PodFact, now: Millis, said: Said): Unproved {
  const { result = 'unproved', why, change, verdict } = said
  return { status: 503, result, evidence: 'none', change, ...body(hook, pod, now, why, verdict) }
}

/** How long the hook was held until its time was over. */
export const overdueWords = ({ receivedAt }: Hook, now: Millis): string =>
  `the time was up after ${formatDuration(Math.round(Math.max(0, now - receivedAt)))}`

const body = (hook: Hook, pod: PodFact, now: Millis, why: string, verdict?: Proven | Waiting) => ({
  pod: { namespace: pod.namespace, name: pod.name, uid: hook.uid },
  elapsedMs: Math.max(0, Math.round(now - hook.receivedAt)),
  gateways: verdict?.gateways ?? [],
  holders: verdict?.holders ?? [],
  successors: (verdict && 'succeeded' in verdict && verdict.succeeded) || [],
  longLived: verdict?.longLived ?? null,
  why
})
