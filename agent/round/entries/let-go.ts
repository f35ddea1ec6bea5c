import { HOLD_ALL, type LetGo } from '../../rules/proof/proof.ts'
import type { Millis, NodeKey, PodFact } from '../../rules/drain/facts.ts'
import { isOfOtherNamespace, type Holder } from '../../rules/plan/holder.ts'

/** A holder that lists a pod, or has listed it since its drain began. */
export interface ListedIn {
  readonly holder: Holder
  /** When the pod left the holder; `undefined`: the holder lists the pod now. */
  readonly removedAt: Millis | undefined
}

/** The most places without another choice that words name (docs/barrier-api.md). */
const MOST_NAMED = 16
/** How long after a removal the agent assumes that every worker has applied the removal, in ms. Workers take milliseconds. */
const APPLIED_MS = 1000

/** `upstreams/ID`, the part that names of holders and of workers' places have in common. */
export const objectOf = (name: string): string => name.split('/', 2).join('/')

/**
 * The places that no longer delay a pod's seal, once the time for holders of other namespaces is over (docs/decisions/0057). Such a place
 * must be known to be of another namespace. Words name at most 16 places without another choice, and 16 lists of other choices. If there
 * may be more places, the pod's own holders must have dropped the pod before, because an unnamed place could be theirs.
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
