import type { Drain } from '../drain/drain.ts'
import type { NodeKey, PodFact } from '../drain/facts.ts'
import type { Holder, HolderNode } from './holder.ts'
import type { World } from './world.ts'

/** The addresses under which a pod can be a node: bare hosts, with ports where it shares its host's address. */
export declare function nodesOf(pod: PodFact, ports: readonly number[]): NodeKey[]

export interface Match {
  readonly holder: Holder
  readonly node: HolderNode
  readonly drain: Drain
}
export declare function endingNodes(world: World, drain: Drain): Match[]
