import type { Drains } from '../rules/drain/drain.ts'
import type { PodUid } from '../rules/drain/facts.ts'
import type { PlanSettings } from '../rules/plan/world.ts'
import type { Sources } from './gather/sources.ts'

/** Returns the settings of one plan: the configured ones, the mode of APISIX, and whether some gateway never had a barrier. */
export function createPlanSettings(
  settings: PlanSettings,
  { mode, barrier, cluster }: Pick<Sources, 'mode' | 'barrier' | 'cluster'>
) {
  /** The gateways that have had a barrier. One that is unfit for a minute is still one of them. */
  const had = new Set<string>()
  /** Whether the gateway refuses a drain, and never had a barrier. Without an answer it does not count yet: that starts a new plan. */
  const isBare = (id: string, uids: readonly PodUid[]): boolean => {
    const doubted = barrier?.doubt(id) !== ''
    if (!doubted && barrier?.state(id)?.told?.fit) had.add(id)
    if (had.has(id)) return false
    const readings = uids.flatMap(uid => barrier?.reading(uid, id) ?? [])
    return readings.some(({ problem, fit }) => doubted || problem !== '' || !fit)
  }
  return (drains: Drains, unsure: ReadonlySet<PodUid>): PlanSettings => {
    const uids = [...drains.keys()]
    return {
      ...settings,
      unsure,
      unbarred: !barrier || cluster.gateways().some(({ id }) => isBare(id, uids)),
      standalone: mode.current().mode === 'standalone'
    }
  }
}
