import { addressOf } from '../gateway/apisix/nodes.ts'
import type { DesiredDrain } from '../gateway/barrier/desired-entry.ts'
import type { Drains } from '../rules/drain/drain.ts'
import type { NodeKey, PodUid } from '../rules/drain/facts.ts'
import type { Kept } from '../rules/plan/change.ts'
import type { HolderKey } from '../rules/plan/holder.ts'
import { endingNodes } from '../rules/plan/match.ts'
import type { World } from '../rules/plan/world.ts'

/** The drains of the last round, for all parts that need them between two rounds. */
export interface CurrentDrains {
  current(): Drains
  /** Whether this address still belongs to an ending pod: a write may have waited, and addresses are reused. */
  isEnding(uid: PodUid, node: NodeKey): boolean
  /** Whether the last plan keeps this node because it is the last one that serves: a removal may have been asked for before. */
  isKeptLast(uid: PodUid, node: NodeKey, holder: HolderKey): boolean
  /** The pods that take over from this node in the gateways; empty without the plugin. */
  successors(node: NodeKey): readonly NodeKey[]
}

/** Only the loop replaces the drains. */
export interface DrainStore extends CurrentDrains {
  replace(next: Drains, entries: readonly DesiredDrain[], kept: readonly Kept[]): void
}

/** Made before the loop, so that parts that the loop needs can read the drains. */
export function createDrainStore(world: World): DrainStore {
  let drains: Drains = new Map()
  let entries: readonly DesiredDrain[] = []
  let keptLast: readonly Kept[] = []
  return {
    current: () => drains,
    isEnding(uid, node) {
      const drain = drains.get(uid)
      return drain !== undefined && endingNodes(world, drains, drain).some(match => match.node.key === node)
    },
    isKeptLast: (uid, node, holder) =>
      keptLast.some(kept => kept.uid === uid && kept.node === node && kept.holder === holder),
    successors(node) {
      const { host, port = '' } = addressOf(node)
      const entry = entries.find(({ nodes }) => nodes.includes(node) || nodes.includes(host))
      return entry?.successors?.[port] ?? []
    },
    replace(next, desired, kept) {
      drains = next
      entries = desired
      keptLast = kept.filter(({ why }) => why === 'last-node')
    }
  }
}
