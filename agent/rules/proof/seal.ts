import type { NodeKey } from '../drain/facts.ts'
import type { Word } from './evidence.ts'

/** The places in workers' words that no longer delay a pod's seal. */
export interface LetGo {
  /** Whether the seal may ignore this place, in which no other node is left. `named`: how many such places the words name. */
  place(name: string, named: number): boolean
  /** Whether the places in which only these nodes are left belong to other namespaces only. */
  others(nodes: readonly NodeKey[]): boolean
  /** Whether the places that words leave out belong to other namespaces only. */
  readonly cut: boolean
}

/** No place is let go: every place without another node delays the seal. */
export const HOLD_ALL: LetGo = { place: () => false, others: () => false, cut: false }

/** The result of `judge`: the words that allow a seal, or the reason against it. */
export type Judged =
  /** The tags of the judged words. The gateway seals only if its workers still report these words. */
  | { readonly tags: readonly string[] }
  /** `isLast`: the workers would choose nothing else. */
  | { readonly why: string; readonly isLast?: true }

/**
 * Whether a gateway may seal an entry. A sealed node is never chosen, even if it is the last one of its place. So three things must hold
 * (docs/decisions/0037). Every worker has reported, which a frozen worker does not. No worker has a place in which no other node
 * is left. Every place has another node that may serve according to Kubernetes. A place that the words leave out may lack such a node, so
 * no gateway seals by words that leave places out. Places that are let go do not count (docs/decisions/0057).
 *
 * @param serves whether the node, `address:port`, may serve according to Kubernetes
 */
export function judge(word: Word, serves: (node: string) => boolean, letGo: LetGo = HOLD_ALL): Judged {
  const { complete, said, asked, others, cut, tags } = word
  const sole = word.sole.filter(place => !letGo.place(place, word.sole.length))
  if (!complete) return { why: `${said} of ${asked} workers have said what they could choose instead` }
  if (sole.length > 0) return { why: `nothing else is left in ${named(sole)}`, isLast: true }
  const bad = others.find(({ nodes, more }) => more === 0 && !nodes.some(serves) && !letGo.others(nodes))
  if (!bad && cut > 0 && !letGo.cut)
    return { why: `the words of its workers leave out what is left in ${cut} more places` }
  return bad ? { why: `what is left does not serve: ${named(bad.nodes)}`, isLast: true } : { tags }
}

const named = (all: readonly string[]): string =>
  all.length > 3 ? `${all.slice(0, 3).join(', ')} and ${all.length - 3} more` : all.join(', ')
