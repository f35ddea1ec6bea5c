import type { Drain } from '../drain/drain.ts'
import type { Millis, NodeKey } from '../drain/facts.ts'
import { addressOf } from '../gateway/nodes.ts'
import type { Holder, HolderKey } from '../plan/holder.ts'
import type { HolderView } from '../serve/snapshot.ts'
import type { Cluster } from '../watch/cluster.ts'
import { expectedNodes } from './expected.ts'
import type { Memory } from './memory.ts'

/** Where a holder differs from what Kubernetes says, and since when. */
export type Difference = Pick<HolderView, 'ghosts' | 'missing'>

/** How many holders are compared with the EndpointSlices at one look. The others keep what was found at theirs. */
const AT_ONCE = 250

const NONE: Difference = { ghosts: [], missing: [] }

/**
 * Ghosts are nodes that outlived a pod that we drained. A node is missing where `expectedNodes` says so, and from then on
 * until it is listed or its pod is not Ready any more, however old that pod gets: this is what an owner that has
 * stopped writing looks like.
 */
export function createDrift({ pods, slices }: Pick<Cluster, 'pods' | 'slices'>) {
  const missing = new Map<HolderKey, ReadonlyMap<NodeKey, Millis>>()
  let turn = 0

  const compare = (holder: Holder, now: Millis): void => {
    const known = missing.get(holder.key)
    const listed = new Set(holder.nodes.map(node => node.key))
    const found = new Map<NodeKey, Millis>()
    for (const [node, since] of known ?? []) {
      if (!listed.has(node) && isReady(node)) found.set(node, since)
    }
    for (const node of expectedNodes({ pods, slices }, holder, now)) {
      if (!found.has(node)) found.set(node, now)
    }
    if (found.size > 0) missing.set(holder.key, found)
    else missing.delete(holder.key)
  }
  const isReady = (node: NodeKey) =>
    pods.byIp(addressOf(node).host).some(pod => pod.ready && pod.deletionAt === undefined)

  return {
    /**
     * Looks at some of the holders, and says of each what is known by now. What is missing must have been so in a listing
     * that was read (`readAt`) after it was first noticed: until then the listing may only be old.
     */
    look(
      holders: readonly Holder[],
      drains: readonly Drain[],
      memory: (uid: Drain['uid']) => Memory,
      readAt: Millis,
      now: Millis
    ): (key: HolderKey) => Difference {
      const first = turn < holders.length ? turn : 0
      for (const holder of holders.slice(first, first + AT_ONCE)) compare(holder, now)
      turn = first + AT_ONCE
      const present = new Set(holders.map(({ key }) => key))
      for (const key of missing.keys()) if (!present.has(key)) missing.delete(key)

      const ghosts = Map.groupBy(ghostsOf(drains, memory), ({ key }) => key)
      return key => {
        const lost = missing.get(key)
        const left = ghosts.get(key)
        if (!lost && !left) return NONE
        return {
          ghosts: (left ?? []).map(({ node, since }) => ({ node, since })),
          missing: [...(lost ?? [])].flatMap(([node, since]) => (since < readAt ? [{ node, since }] : []))
        }
      }
    }
  }
}

/** Nodes that are still listed although the pod that was drained from there is gone. */
export const ghostsOf = (drains: readonly Drain[], memory: (uid: Drain['uid']) => Memory) =>
  drains.flatMap(drain => {
    if (drain.phase !== 'gone') return []
    const listed = [...memory(drain.uid).places.values()].filter(({ removedAt }) => removedAt === undefined)
    return listed.map(({ holder, node }) => ({ key: holder.key, node, since: drain.at }))
  })
