/**
 * The merged words of all workers of one gateway about all addresses of one pod (docs/barrier-api.md). A word has the places in which a
 * worker would choose the pod, in the configuration that it has, and the other choices there.
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
  /** Names of places without another choice: every node there is denied. */
  readonly sole: readonly string[]
  /** Names of places in which only successors are left. */
  readonly succeeded: readonly string[]
  /** The other choices of the remaining places. */
  readonly others: readonly OtherChoices[]
  /** The number of further places, whose other choices are left out here. */
  readonly cut: number
  /** The tag that names each word, in the order of the addresses; empty while the words are not complete. */
  readonly tags: readonly string[]
  /** Every worker also seals and counts the L4 sessions to each address. */
  readonly l4: boolean
}

/** Whether the workers report that no place lists the pod, and that they can see the nodes of every place. */
export const isNowhere = (word: Word | undefined): boolean =>
  word?.complete === true && word.places === 0 && word.hidden === 0

/** The nodes that are left in `places` places, each as `address:port`. `more` further nodes are not listed. */
interface OtherChoices {
  readonly places: number
  readonly nodes: readonly string[]
  readonly more: number
}
