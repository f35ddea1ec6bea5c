import type { Drains } from '../rules/drain/drain.ts'
import type { Millis, PodUid } from '../rules/drain/facts.ts'
import type { Plan } from '../rules/plan/change.ts'
import { sealedUntil } from '../rules/plan/policies.ts'
import type { PlanSettings } from '../rules/plan/world.ts'
import type { Sources } from './gather/sources.ts'

/** The settings of one plan: the configured ones, the mode of APISIX, and the drains that no barrier covers. */
export function planSettings(
  settings: PlanSettings,
  { mode, barrier, cluster }: Pick<Sources, 'mode' | 'barrier' | 'cluster'>,
  drains: Drains,
  unsure: ReadonlySet<PodUid>
): PlanSettings {
  const gateways = cluster.gateways()
  /**
   * Whether some gateway has reported that its barrier does not cover the pod. A gateway without an answer does not count yet: its answer
   * starts a new plan.
   */
  const isRefused = (uid: PodUid): boolean =>
    gateways.some(({ id }) => {
      const reading = barrier?.reading(uid, id)
      return reading !== undefined && (reading.problem !== '' || !reading.fit || barrier?.doubt(id) !== '')
    })
  // Until the list of gateways is known, no pod counts as covered by a barrier.
  const areKnown =
    gateways.length > 0 && cluster.parts().every(({ name, synced }) => name !== 'gateways' || synced)
  const unbarred = [...drains.keys()].filter(uid => !barrier || !areKnown || isRefused(uid))
  return {
    ...settings,
    unsure,
    unbarred: new Set(unbarred),
    standalone: mode.current().mode === 'standalone'
  }
}

/** The times until which nodes stay listed. At each of these times a new plan is due, even without an event. */
export function deferredUntil({ kept }: Plan, drains: Drains, deferMs: number): readonly Millis[] {
  return kept.flatMap(({ why, uid }) => {
    const drain = drains.get(uid)
    if (drain && why === 'deferred') return [drain.since + deferMs]
    return drain && why === 'whole-write' ? [sealedUntil(drain)] : []
  })
}
