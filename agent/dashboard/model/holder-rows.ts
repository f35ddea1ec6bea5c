import type { HolderView } from '../../serve/snapshot.ts'

export const HOLDER_FILTERS = ['all', 'ghosts', 'missing', 'in order'] as const
export type HolderFilter = (typeof HOLDER_FILTERS)[number]

const KEEPS: Record<HolderFilter, (holder: HolderView) => boolean> = {
  all: () => true,
  ghosts: ({ ghosts }) => ghosts.length > 0,
  missing: ({ missing }) => missing.length > 0,
  'in order': ({ ghosts, missing }) => ghosts.length + missing.length === 0
}

/** What somebody searches for can be a key, a name, an owner, or a node's address. What differs comes first. */
export function holderRows(
  holders: readonly HolderView[],
  filter: HolderFilter,
  query: string
): readonly HolderView[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const found = holders.filter(holder => {
    if (!KEEPS[filter](holder)) return false
    if (words.length === 0) return true
    const text = `${holder.key} ${holder.name ?? ''} ${holder.owner} ${holder.nodes.join(' ')}`.toLowerCase()
    return words.every(word => text.includes(word))
  })
  const trouble = ({ ghosts, missing }: HolderView) => Number(ghosts.length + missing.length > 0)
  return found.toSorted((a, b) => trouble(b) - trouble(a))
}
