import type { Clock } from '../../base/clock.ts'
import type { Millis, NodeKey } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import { writerOf } from '../apisix/owner.ts'
import type { RemovalTools } from './removal.ts'

/** The nodes that the agent's last write of each holder listed. Only this part has this state. */
interface OwnWrites {
  wrote(written: Parameters<RemovalTools['wrote']>[0]): void
  /** The writer that put a node back. This may be the agent itself, if it wrote a list that it had read before the removal. */
  whoPutBack(holder: Holder, node: NodeKey, removedAt: Millis): string
}

export function createOwnWrites(clock: Clock): OwnWrites {
  const listed = new Map<HolderKey, { readonly at: Millis; readonly nodes: ReadonlySet<NodeKey> }>()
  return {
    wrote({ edits }) {
      for (const { holder, remove, add } of edits) {
        const nodes = [...holder.nodes.filter(({ key }) => !remove.has(key)), ...add]
        listed.set(holder.key, { at: clock.now(), nodes: new Set(nodes.map(({ key }) => key)) })
      }
    },
    whoPutBack(holder, node, removedAt) {
      const last = listed.get(holder.key)
      const isOurs = last !== undefined && last.at >= removedAt && last.nodes.has(node)
      return isOurs ? 'our own write' : writerOf(holder)
    }
  }
}
