import type { Drains } from '../drain/drain.ts'
import type { PodFact } from '../drain/facts.ts'
import type { HolderKey } from '../plan/holder.ts'
import { isEnding, serves } from '../plan/match.ts'
import type { World } from '../plan/world.ts'
import type { Sources } from './sources.ts'

/** After so many that came up lately no other is looked for: where the agent has just started all have, for what it knows. */
const LOOKED_PAST = 16

/** The revision of a holder from which on a worker knows a node of it that can take over; `undefined`: there is none. */
export type ReplacementSince = (holder: HolderKey) => number | undefined

/**
 * Found once for each holder and round: hundreds of pods of one holder may end at once.
 *
 * A pod that came up after the holder was listed does not count: what that listing shows at its address may be the pod that had it
 * before, and be taken out by now. With `hostNetwork` the successor often comes where the pod was; and a pod that was not
 * Ready for a while has the same address again. Where it came up before, but lately, its node may have gone and come back between
 * two listings: only what was applied of the last one shows it.
 */
export function replacements(
  { inventory, cluster }: Pick<Sources, 'inventory' | 'cluster'>,
  world: World,
  drains: Drains
): ReplacementSince {
  const ending = new Set([...drains.values()].flatMap(drain => (isEnding(drain) ? drain.pod.ips : [])))
  const found = new Map<HolderKey, number | undefined>()
  const find: ReplacementSince = key => {
    let first: number | undefined
    let lately = 0
    const holder = inventory.holders().get(key)
    const listedAt = (holder && inventory.readAt(holder.resource)) ?? -Infinity
    const wasUp = ({ uid }: PodFact) => (cluster.pods.upSince(uid) ?? -Infinity) <= listedAt
    const hasLongBeenUp = ({ uid }: PodFact) => cluster.pods.upSince(uid) === undefined
    for (const node of holder?.nodes ?? []) {
      if (node.weight === 0 || ending.has(node.host)) continue
      const since = inventory.listedSince(key, node.key)
      if (since === undefined || (first !== undefined && since >= first)) continue
      if (serves(world, drains, node, hasLongBeenUp)) first = since
      else if (serves(world, drains, node, wasUp)) {
        first = Math.min(first ?? Infinity, holder?.revision ?? since)
        if (++lately === LOOKED_PAST) break
      }
    }
    return first
  }
  return key => {
    if (!found.has(key)) found.set(key, find(key))
    return found.get(key)
  }
}
