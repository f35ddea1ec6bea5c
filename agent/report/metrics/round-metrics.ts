import type { Clock } from '../../base/clock.ts'
import type { Drain, Verdict } from '../../rules/drain/drain.ts'
import { LONG_LIVED } from './metric-labels.ts'
import type { Metrics } from './metrics.ts'
import type { Observer } from '../../round/observer.ts'
import { lagOf, latestDecision } from '../snapshot/lag.ts'
import { isRiskless, type Memory } from '../../round/gather/memory.ts'
import { acceptedAt, momentsOf } from '../snapshot/moments.ts'

/** Turns the decisions of rounds into metrics. */
export function meter(metrics: Metrics, clock: Clock): Observer {
  const since = (step: string, from: number | undefined, to: number) => {
    if (from !== undefined) metrics.drainPhase.observe({ step }, Math.max(0, to - from) / 1000)
  }
  return {
    drain(before, after, memory) {
      if (!before && after) since('decided-seen', after.decidedAt, after.since)
      if (before?.phase === 'draining' && after && after.phase !== 'gone') left(after, memory)
      // A pod that no holder lists is forgotten in the same round that sees it gone.
      if (before && before.phase !== 'gone' && (!after || after.phase === 'gone')) {
        since('ack-gone', memory.ackAt, clock.now())
        // Not before the pod is gone: a barrier proves a drain before its holders drop the node.
        observeHolderLags(before, memory)
      }
    },
    ack(_ack, drain, memory) {
      if (drain && memory.ackAt !== undefined) since('seen-ack', drain.since, memory.ackAt)
    },
    round(tookMs) {
      metrics.roundDuration.observe(tookMs / 1000)
      metrics.roundSuccess.set(clock.now() / 1000)
    }
  }

  function observeHolderLags(drain: Drain, memory: Memory): void {
    if (drain.phase === 'undone') return
    const due = latestDecision(momentsOf(drain, memory))
    for (const { holder, removedAt } of memory.places.values()) {
      if (removedAt === undefined) continue
      const lag = Math.max(0, removedAt - due) / 1000
      metrics.holderLag.observe({ direction: 'removal', resource: holder.resource }, lag)
    }
  }

  function left(drain: Drain, memory: Memory): void {
    if (drain.phase === 'draining' || drain.phase === 'gone') return
    const accepted = acceptedAt(memory)
    if (accepted !== undefined) since('seen-accepted', drain.since, accepted)
    if (drain.phase === 'expired' && !isRiskless(memory)) unconfirmed(drain.verdict)
    if (drain.phase !== 'proven') return
    since('seen-confirmed', drain.since, drain.at)
    const { longLived } = drain.verdict
    if (longLived) for (const kind of LONG_LIVED) metrics.longLivedLeft.inc({ kind }, longLived[kind])
    // No gateway routed to it, so it has no lag.
    if (drain.verdict.result === 'not-routed') return
    const moments = momentsOf(drain, memory)
    if (moments.sealedAt !== null) since('seen-sealed', drain.since, moments.sealedAt)
    if (moments.idleAt !== null) since('seen-idle', drain.since, moments.idleAt)
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
