import type { HolderView } from '../../report/snapshot/holder-view.ts'
import { count, formatMs } from './format.ts'
import { LATE_MS } from './why-behind.ts'
import type { Tone } from './words.ts'

export const HOLDER_FILTERS = ['all', 'on successors', 'ghosts', 'missing', 'in order'] as const
export type HolderFilter = (typeof HOLDER_FILTERS)[number]

const troubles = ({ ghosts, missing, notReady, onSuccessors }: HolderView) =>
  ghosts.length + missing.length + notReady.length + Number(onSuccessors !== null)

const KEEPS: Record<HolderFilter, (holder: HolderView) => boolean> = {
  all: () => true,
  'on successors': ({ onSuccessors }) => onSuccessors !== null,
  ghosts: ({ ghosts }) => ghosts.length > 0,
  missing: ({ missing }) => missing.length > 0,
  'in order': holder => troubles(holder) === 0
}

/** The holders that match filter and search; holders that differ come first. A search matches key, name, owner, Service and nodes. */
export function holderRows(
  holders: readonly HolderView[],
  filter: HolderFilter,
  query: string
): readonly HolderView[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const found = holders.filter(holder => {
    if (!KEEPS[filter](holder)) return false
    if (words.length === 0) return true
    const { key, name, owner, service, nodes } = holder
    const text = [key, name, owner, service, ...nodes].join(' ').toLowerCase()
    return words.every(word => text.includes(word))
  })
  return found.toSorted((a, b) => Number(troubles(b) > 0) - Number(troubles(a) > 0))
}

/** `bad` once a difference is older than LATE_MS. Younger differences are part of every rollout. */
export function toneOf({ ghosts, missing, notReady, onSuccessors }: HolderView, now: number): Tone {
  const all = [...ghosts, ...missing, ...notReady, ...(onSuccessors ? [onSuccessors] : [])]
  return all.some(({ since }) => now - since > LATE_MS) ? 'bad' : 'busy'
}

/** The differences of a holder from Kubernetes, with their age: `1 ghost: 10.4.1.7:8080 (3 min 05 s)`. */
export function differenceOf({ ghosts, missing, notReady, onSuccessors }: HolderView, now: number): string {
  const age = (since: number) => formatMs(Math.max(0, Math.round((now - since) / 1000) * 1000))
  const list = (nodes: readonly { readonly node: string; readonly since: number }[]) =>
    nodes.map(({ node, since }) => `${node} (${age(since)})`).join(' ')
  return [
    ...(onSuccessors
      ? [`no node that serves (${age(onSuccessors.since)}), successors: ${onSuccessors.nodes.join(' ')}`]
      : []),
    ...(ghosts.length > 0 ? [`${count(ghosts.length, 'ghost')}: ${list(ghosts)}`] : []),
    ...(missing.length > 0 ? [`missing: ${list(missing)}`] : []),
    ...(notReady.length > 0 ? [`not Ready and still listed: ${list(notReady)}`] : [])
  ].join(' · ')
}
