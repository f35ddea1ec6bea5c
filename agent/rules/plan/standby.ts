import type { Drains } from '../drain/drain.ts'
import type { NodeKey } from '../drain/facts.ts'
import type { Holder, HolderKey } from './holder.ts'
import { livePodsAt, podsAt, serves } from './match.ts'
import type { World } from './world.ts'

/** The nodes that get a holder's requests if only nodes of weight 0 are left in it. */
export interface Standbys {
  readonly holder: HolderKey
  /** Pods as `namespace/name`; other nodes by their address. */
  readonly names: readonly string[]
}

/**
 * The nodes of weight 0 that take over from this node. `undefined` if another node with a weight stays, or if no node of weight 0 serves.
 * The caller checks that the node itself has a weight.
 */
export function standbysFor(
  node: NodeKey,
  { key: holder, nodes }: Holder,
  world: World,
  drains: Drains
): Standbys | undefined {
  const stays = nodes.filter(
    each =>
      each.key !== node && (podsAt(world, each).length === 0 || livePodsAt(world, drains, each).length > 0)
  )
  if (stays.some(({ weight }) => weight > 0)) return undefined
  const names = stays
    .filter(each => serves(world, drains, each))
    .map(each => {
      const pod = livePodsAt(world, drains, each).find(({ ready }) => ready)
      return pod ? `${pod.namespace}/${pod.name}` : each.key
    })
  return names.length > 0 ? { holder, names } : undefined
}

/** Text for the end of a sentence; empty if there are no standbys. */
export const standbyWords = (all: readonly Standbys[]): string =>
  all
    .slice(0, 3)
    .map(
      ({ holder, names: [first, ...more] }) =>
        `; no node with a weight is left in ${holder}: its standby ${first}${more.length > 0 ? ` and ${more.length} more` : ''} of weight 0 takes over`
    )
    .join('')
