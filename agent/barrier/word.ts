import type { WorkersWord } from '../apisix/barrier-wire.ts'

/**
 * The merged words of all workers of one gateway about all addresses of one pod (docs/barrier-api.md): the places in which they
 * would choose it, in the configuration that each worker has, and the other choices there.
 */
export interface Word {
  /** Every serving worker has reported on each address since its entry came, and nothing has changed since. */
  readonly complete: boolean
  /** How many workers have reported, and how many serve. */
  readonly said: number
  readonly asked: number
  readonly places: number
  /** How many places have nodes that a worker cannot see. */
  readonly hidden: number
  /** Names of places with no other choice that is not denied. */
  readonly sole: readonly string[]
  /** Names of places in which only successors are left. */
  readonly succeeded: readonly string[]
  /** The other choices of every other place. */
  readonly others: WorkersWord['others']
  /** How many more places have their other choices left out. */
  readonly cut: number
  /** The tag that names each word, in the order of the addresses; empty while the words are not complete. */
  readonly tags: readonly string[]
  /** Every worker also seals and counts the L4 sessions to each address. */
  readonly l4: boolean
}

/** Merges the words about each address of a pod; `undefined` if one of them is missing. */
export function wordOf(words: readonly (WorkersWord | undefined)[]): Word | undefined {
  const told = words.filter(word => word !== undefined)
  if (told.length === 0 || told.length < words.length) return undefined
  const tags = told.flatMap(({ tag, said, asked }) => (tag !== undefined && said === asked ? [tag] : []))
  const complete = tags.length === told.length
  return {
    complete,
    said: Math.min(...told.map(({ said }) => said)),
    asked: Math.max(...told.map(({ asked }) => asked)),
    places: told.reduce((sum, { places }) => sum + places, 0),
    hidden: Math.max(...told.map(({ hidden }) => hidden)),
    sole: [...new Set(told.flatMap(({ sole }) => sole))],
    succeeded: [...new Set(told.flatMap(({ succeeded = [] }) => succeeded))],
    others: told.flatMap(({ others }) => others),
    cut: told.reduce((sum, { cut }) => sum + cut, 0),
    tags: complete ? tags : [],
    l4: told.every(({ l4 }) => l4 === true)
  }
}

/** Whether the workers report that no place lists the pod, and that they can see the nodes of every place. */
export const isNowhere = (word: Word | undefined): boolean =>
  word?.complete === true && word.places === 0 && word.hidden === 0
