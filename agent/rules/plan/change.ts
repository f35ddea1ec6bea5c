import type { NodeKey, PodUid } from '../drain/facts.ts'
import type { Holder, HolderKey } from './holder.ts'
import type { Turn } from './turn.ts'

/** One holder, and all nodes to remove from it in one write. A plan never holds two changes for one holder. */
export interface Change {
  readonly holder: Holder
  readonly nodes: readonly { readonly key: NodeKey; readonly uid: PodUid }[]
}

/** A node that stays listed although its pod ends, and the reason. */
export interface Kept {
  readonly holder: HolderKey
  readonly node: NodeKey
  readonly uid: PodUid
  readonly why: 'last-node' | Exclude<Turn, 'we'>
}

/** The removals that APISIX needs, as a value. */
export interface Plan {
  readonly changes: readonly Change[]
  readonly kept: readonly Kept[]
}

/** Whether two plans keep the same nodes, for the same reasons. */
export const keepsTheSame = (a: Plan, b: Plan): boolean => keptBy(a) === keptBy(b)

const keptBy = (p: Plan) => p.kept.map(k => `${k.holder} ${k.node} ${k.why}`).join('\n')
