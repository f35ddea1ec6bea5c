import type { Word } from './word.ts'

/** Whether a seal leaves every worker of a gateway with a choice, by the words of the workers. */
export type Judged =
  /** The tags of the words that were judged: the gateway seals only if they still stand. */
  { readonly tags: readonly string[] } | { readonly why: string }

/** What a gateway lacks whose plugin has no words. */
export const OLDER_PLUGIN =
  'its plugin is older than this agent and does not tell what its workers could choose instead: install the plugin of this release'

/**
 * From the seal on a node is not chosen, even where it is the last one. So every worker must have spoken (a frozen one does not, and the
 * entry is not sealed because of it), none may have a place in which nothing else is left, and in every place another choice must be
 * there that is not known to be bad (docs/decisions/0029, W1 to W4).
 *
 * @param serves whether a node, `address:port`, may serve as far as Kubernetes tells
 */
export function judge(word: Word, serves: (node: string) => boolean): Judged {
  const { complete, said, asked, sole, others, tags } = word
  if (!complete) return { why: `${said} of ${asked} workers have said what they could choose instead` }
  if (sole.length > 0) return { why: `nothing else is left in ${named(sole)}` }
  const bad = others.find(({ nodes, more }) => more === 0 && !nodes.some(serves))
  return bad ? { why: `what is left does not serve: ${named(bad.nodes)}` } : { tags }
}

const named = (all: readonly string[]): string =>
  all.length > 3 ? `${all.slice(0, 3).join(', ')} and ${all.length - 3} more` : all.join(', ')
