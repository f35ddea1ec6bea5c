import type { Drain } from '../../rules/drain/drain.ts'
import type { PodUid } from '../../rules/drain/facts.ts'
import type { BehindView } from '../snapshot/holder-view.ts'
import { latestDecision } from '../snapshot/lag.ts'
import { momentsOf } from '../snapshot/moments.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import type { Memory } from '../../round/gather/memory.ts'
import type { HolderClock } from './holder-clock.ts'

type GatewayBehind = BehindView['gateways'][number]

/**
 * The gateways that have not sealed an ending pod yet, by holder that lists or listed it. Such a gateway is behind from Kubernetes'
 * decision until it seals the pod; without the plugin, until it was seen without the pod. A last endpoint that is held as planned is
 * not behind.
 */
export function unsealedIn(
  drains: readonly Drain[],
  memory: (uid: PodUid) => Memory
): ReadonlyMap<HolderKey, readonly GatewayBehind[]> {
  const found = new Map<HolderKey, GatewayBehind[]>()
  for (const drain of drains) {
    if (drain.phase !== 'draining' || drain.verdict.kind !== 'waiting' || drain.verdict.lastEndpoint) continue
    const late = drain.verdict.gateways.filter(({ sealedAt, at }) => (sealedAt ?? at) === undefined)
    if (late.length === 0) continue
    const since = latestDecision(momentsOf(drain, memory(drain.uid)))
    const { namespace, name } = drain.pod
    for (const { key } of drain.verdict.holders) {
      const behind = late.map(({ name: gateway, why, grade }) => ({
        gateway,
        since,
        why: `${namespace}/${name} ends: ${why}`,
        evidence: grade === 'observed' ? ('observed' as const) : ('barrier' as const)
      }))
      found.set(key, [...(found.get(key) ?? []), ...behind])
    }
  }
  return found
}

/** A holder's clock together with the gateways that have not sealed a pod there. Each gateway once, with the oldest change. */
export function withUnsealed(
  clock: HolderClock,
  unsealed: readonly GatewayBehind[] | undefined
): HolderClock {
  if (!unsealed) return clock
  const { behind } = clock
  const oldest = new Map<string, GatewayBehind>()
  for (const one of [...(behind?.gateways ?? []), ...unsealed])
    if (one.since < (oldest.get(one.gateway)?.since ?? Infinity)) oldest.set(one.gateway, one)
  const gateways = [...oldest.values()]
  const since = Math.min(behind?.since ?? Infinity, ...gateways.map(one => one.since))
  return {
    ...clock,
    behind: { since, owner: behind?.owner ?? null, cause: behind?.cause ?? 'gateways', gateways }
  }
}
