import { HOLD_ALL, type LetGo } from '../../rules/proof/seal.ts'
import type { Millis, NodeKey, PodFact } from '../../rules/drain/facts.ts'
import { isOfOtherNamespace, type Holder } from '../../rules/plan/holder.ts'

/** A holder that lists a pod, or has listed it since its drain began. */
export interface ListedIn {
  readonly holder: Holder
  /** When the pod left it; `undefined`: it lists the pod now. */
  readonly removedAt: Millis | undefined
}

/** The most places without another node that words name (docs/barrier-api.md). */
const MOST_NAMED = 16
/** How long after a removal every worker has applied it, in ms. Workers take milliseconds. */
const APPLIED_MS = 1000

/** `upstreams/ID`, the part that names of holders and of workers' places have in common. */
export const objectOf = (name: string): string => name.split('/', 2).join('/')

/**
 * The places that no longer hold a pod, once the holders of other namespaces have had their time (docs/decisions/0057). A place counts
 * only if it is known to be of another namespace. Words name at most 16 places, and the other choices of 16. If there may be more, the
 * pod's own holders must have dropped it before, because one of their places could be among the rest.
 */
export function letGoOf(pod: Pick<PodFact, 'namespace'>, listedIn: Iterable<ListedIn>, now: Millis): LetGo {
  const all = [...listedIn]
  const foreign = all.filter(({ holder }) => isOfOtherNamespace(pod, holder))
  if (foreign.length === 0) return HOLD_ALL
  const own = all.filter(({ holder }) => !isOfOtherNamespace(pod, holder))
  const objects = new Set(foreign.map(({ holder }) => objectOf(holder.key)))
  const isClear = own.every(({ removedAt }) => removedAt !== undefined && removedAt + APPLIED_MS <= now)
  const has = ({ holder }: ListedIn, node: NodeKey) => holder.nodes.some(({ key }) => key === node)
  return {
    place: (name, named) => objects.has(objectOf(name)) && (named < MOST_NAMED || isClear),
    others: nodes =>
      foreign.some(one => nodes.every(node => has(one, node))) &&
      !own.some(one => nodes.some(node => has(one, node))),
    cut: isClear
  }
}
