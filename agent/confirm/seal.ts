import type { Drain } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import type { Resource } from '../plan/holder.ts'
import type { BarrierReading } from './evidence.ts'
import { appliedRevision, type GatewayState } from './gateway-state.ts'

/** By kind of object, the revision from which on a worker knows another node in every holder of that kind. Never empty. */
export type Needed = ReadonlyMap<Resource, number>

/** Whether to seal now, with the reason either way. */
export interface Sealable {
  readonly seal: boolean
  readonly why: string
}

export interface SealSettings {
  /** How long before the deadline it is sealed whatever else is known, in ms. */
  readonly sealBeforeMs: number
  readonly waitForInflight: boolean
  /** What every worker must have applied to know another node; `undefined` where no revision tells. */
  readonly needed: Needed | undefined
  /** Up to where every worker of this gateway has applied a kind of object; `undefined` where it does not say. */
  readonly applied: (kind: Resource) => number | undefined
  /** Since when this gateway's entry has been looked at without a bypass, and how long that must be where no revision tells, in ms. */
  readonly quietSince: Millis
  readonly quietMs: number
}

/**
 * Whether the entry of a drain may be sealed at one gateway now. `before` is the look before this one. Too early makes
 * an outage: from the seal on the node is not picked even as the last one. So nothing may have been bypassed since the
 * last look, which would mean that this gateway knows no other node. But that no request came by says little: every
 * worker must have applied a configuration that lists another node (or, where no revision tells that, nothing may have
 * been bypassed for a while). Except when the budget is nearly over (`sealBeforeMs` before the deadline), because the pod is about to stop serving anyhow.
 */
export function sealable(
  look: { readonly before: BarrierReading | undefined; readonly current: BarrierReading | undefined },
  drain: Pick<Drain, 'deadline'>,
  lastEndpoint: boolean,
  now: Millis,
  settings: SealSettings
): Sealable {
  const { before, current } = look
  const no = (why: string): Sealable => ({ seal: false, why })
  if (current === undefined || current.problem !== '' || !current.fit) return no('the barrier cannot be used')
  if (current.entry !== 'draining') return no(`the entry is ${current.entry}`)
  if (now >= drain.deadline - settings.sealBeforeMs) return { seal: true, why: 'the budget is nearly over' }
  if (lastEndpoint) return no('a holder keeps the node as its last one')
  const known = before?.instance === current.instance ? before.bypasses : 0
  if (current.bypasses > known) return no('it was picked since the last look because there was no other node')
  const inflight = current.inflight.requests + current.inflight.long
  if (settings.waitForInflight && inflight > 0) return no(`${inflight} in flight`)
  const kinds = [...(settings.needed ?? [])].map(([kind, since]) => ({
    kind,
    since,
    applied: settings.applied(kind)
  }))
  if (settings.needed !== undefined && kinds.every(({ applied }) => applied !== undefined)) {
    const behind = kinds.find(({ since, applied = 0 }) => applied < since)
    if (behind === undefined) return { seal: true, why: 'every worker knows another node' }
    const { kind, since, applied } = behind
    return no(
      `a worker has applied revision ${applied} of the ${kind} only, another node is listed since ${since}`
    )
  }
  // By what was read, not by the time of day: a look from before that time says nothing of it.
  return current.at >= settings.quietSince + settings.quietMs
    ? { seal: true, why: 'nobody needed it for a while' }
    : no('whether every worker knows another node is not known, so it is looked at for a while')
}

/**
 * Whether the first that a gateway hears of a drain may be the seal: half of the way to the ack. Before the entry is there no
 * bypass can be looked for, so every worker must be known to have what takes over (a revision that was applied stays so).
 */
export function sealableAtOnce(state: GatewayState | undefined, needed: Needed | undefined): boolean {
  if (!state?.told?.fit || state.problem !== '' || needed === undefined) return false
  return [...needed].every(([kind, since]) => (appliedRevision(state, kind) ?? -Infinity) >= since)
}
