import type { Clock } from '../../base/clock.ts'
import type { Drain, Verdict } from '../../rules/drain/drain.ts'
import { LONG_LIVED } from './metric-labels.ts'
import type { Metrics } from './metrics.ts'
import type { Observer } from '../../round/observer.ts'
import { lagOf, latestDecision } from '../snapshot/lag.ts'
import { isRiskless, type Memory } from '../../round/gather/memory.ts'
import { momentsOf } from '../snapshot/moments.ts'

/** Turns the decisions of rounds into metrics. */
export function meter(metrics: Metrics, clock: Clock): Observer {
  return {
    drain(before, after, memory) {
      if (before?.phase === 'draining' && after && after.phase !== 'gone') left(after, memory)
    },
    round(tookMs) {
      metrics.roundDuration.observe(tookMs / 1000)
      metrics.roundSuccess.set(clock.now() / 1000)
    }
  }

  function left(drain: Drain, memory: Memory): void {
    if (drain.phase === 'draining' || drain.phase === 'gone') return
    if (drain.phase === 'expired' && !isRiskless(memory)) unconfirmed(drain.verdict)
    if (drain.phase !== 'proven') return
    const { longLived } = drain.verdict
    if (longLived) for (const kind of LONG_LIVED) metrics.longLivedLeft.inc({ kind }, longLived[kind])
    // No gateway routed to it, so it has no lag.
    if (drain.verdict.places === 0) return
    const moments = momentsOf(drain, memory)
    const lag = lagOf(moments)
    if (lag !== null) metrics.syncLag.observe({ direction: 'removal' }, lag / 1000)
    const seconds = (to: number) => Math.max(0, to - latestDecision(moments)) / 1000
    for (const { name, at: confirmedAt, sealedAt } of drain.verdict.gateways) {
      const gateway = metrics.gatewayNames.labelOf(name)
      const at = sealedAt ?? confirmedAt
      if (at !== undefined) metrics.gatewayLag.observe({ direction: 'removal', gateway }, seconds(at))
    }
  }

  /** Leaves out waits that are no gateway's fault: a last node that had to stay, and requests in flight behind a seal. */
  function unconfirmed(verdict: Verdict): void {
    if (verdict.kind === 'proven' || verdict.lastEndpoint || verdict.barred) return
    for (const { name, grade } of verdict.gateways)
      if (grade === undefined) metrics.gatewayExpired.inc({ gateway: metrics.gatewayNames.labelOf(name) })
  }
}
