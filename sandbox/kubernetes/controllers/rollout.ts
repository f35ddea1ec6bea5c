import type { Deployment, ReplicaSet } from '../objects.ts'

/** A replica set in the terms of a rollout. Counts are pods. */
export interface Arm {
  readonly id: string
  /** The number in the set's spec. */
  readonly wanted: number
  readonly available: number
  /** Active pods that exist now. */
  readonly actual: number
}

interface Bounds {
  readonly replicas: number
  readonly maxSurge: number
  readonly maxUnavailable: number
}

const resolve = (
  value: number | string | undefined,
  replicas: number,
  round: (n: number) => number
): number => {
  if (typeof value === 'number') return value
  const percent = /^(\d+)%$/.exec(value ?? '25%')
  return percent ? round((Number(percent[1]) * replicas) / 100) : Number(value)
}

/** maxSurge rounds up, maxUnavailable down. With both 0 a rollout could never proceed, so one pod may then be unavailable. */
export function boundsOf(deployment: Deployment): Bounds {
  const replicas = deployment.spec.replicas ?? 1
  const { maxSurge, maxUnavailable } = deployment.spec.strategy?.rollingUpdate ?? {}
  const surge = resolve(maxSurge, replicas, Math.ceil)
  const unavailable = resolve(maxUnavailable, replicas, Math.floor)
  return {
    replicas,
    maxSurge: surge,
    maxUnavailable: surge === 0 && unavailable === 0 ? 1 : Math.min(unavailable, replicas)
  }
}

const sum = (arms: readonly Arm[], of: (arm: Arm) => number): number =>
  arms.reduce((total, arm) => total + of(arm), 0)

type Scales = ReadonlyMap<string, number>

/** How many pods the new set may have now (deployment util NewRSNewReplicas). */
export function newSetSize(fresh: Arm, old: readonly Arm[], { replicas, maxSurge }: Bounds): number {
  if (fresh.wanted >= replicas) return replicas
  const room = replicas + maxSurge - sum([fresh, ...old], arm => Math.max(arm.wanted, arm.actual))
  return room <= 0 ? fresh.wanted : Math.min(fresh.wanted + room, replicas)
}

/**
 * How many pods the old sets keep (reconcileOldReplicaSets). Pods that do not serve go first, then as many as are
 * available beyond the bound. An available pod that is being scaled away does not count as a reserve.
 */
export function oldSetSizes(fresh: Arm, old: readonly Arm[], bounds: Bounds): Scales {
  const sizes = new Map(old.map(arm => [arm.id, arm.wanted]))
  const minAvailable = bounds.replicas - bounds.maxUnavailable
  const all = [fresh, ...old]
  // The rollout must wait for new pods that do not serve yet, so they do not count as a reserve.
  let budget = sum(all, arm => arm.wanted) - minAvailable - Math.max(fresh.wanted - fresh.available, 0)
  if (budget <= 0) return sizes
  const take = (id: string, most: number) => {
    const count = Math.max(Math.min(most, budget, sizes.get(id) ?? 0), 0)
    sizes.set(id, (sizes.get(id) ?? 0) - count)
    budget -= count
  }
  for (const { id, wanted, available } of old) take(id, wanted - available)
  // The remaining budget is exactly the number of pods available beyond the bound.
  for (const { id, wanted } of old) take(id, wanted)
  return sizes
}

/** Sizes for Recreate, which waits until all pods of the old sets are gone. `podsLeft` counts ending pods too. */
export function recreateSizes(fresh: Arm, old: readonly Arm[], replicas: number, podsLeft: number): Scales {
  const sizes = new Map(old.map(arm => [arm.id, 0]))
  return sizes.set(fresh.id, podsLeft === 0 ? replicas : fresh.wanted)
}

export const armOf = (set: ReplicaSet): Arm => ({
  id: set.metadata.name,
  wanted: set.spec.replicas ?? 1,
  available: set.status.availableReplicas ?? 0,
  actual: set.status.replicas ?? 0
})
