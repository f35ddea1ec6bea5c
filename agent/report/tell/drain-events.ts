import type { Clock } from '../../base/clock.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Leader } from '../../kubernetes/lead/elector.ts'
import type { Observer } from '../../round/observer.ts'
import type { Events } from './events.ts'
import type { Moments } from '../snapshot/drain-view.ts'
import { momentsOf } from '../snapshot/moments.ts'
import { isRiskless } from '../../round/gather/memory.ts'

/** How long an agent that does not lead keeps its unsent Events, in ms: longer than the Lease of a dead leader. */
const KEPT_MS = 20_000
const KEPT = 1000

/**
 * Emits a Kubernetes Event on every pod about the result of its drain. Only the leader emits. If it dies first, the next leader
 * emits: an Event that exists already is not written again (`eventObject` derives its name from its content).
 */
export function tell(events: Pick<Events, 'add'>, leader: Pick<Leader, 'leads'>, clock: Clock): Observer {
  let kept: { readonly drain: Drain; readonly moments: Moments; readonly at: Millis }[] = []
  return {
    drain(before, after, memory) {
      if (!after || (before?.phase ?? 'draining') !== 'draining' || after.phase === 'draining') return
      if (after.phase === 'expired' && isRiskless(memory)) return
      const moments = momentsOf(after, memory)
      if (leader.leads()) events.add(after, moments)
      else if (kept.length < KEPT) kept.push({ drain: after, moments, at: clock.now() })
    },
    round() {
      if (kept.length === 0) return
      kept = kept.filter(({ at }) => clock.now() - at < KEPT_MS)
      if (!leader.leads()) return
      for (const { drain, moments } of kept) events.add(drain, moments)
      kept = []
    }
  }
}
