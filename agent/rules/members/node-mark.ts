import { fieldsOf, textOf } from '../../base/read.ts'
import type { Holder, HolderNode } from '../plan/holder.ts'

/** In the metadata of a node (array form): the Service that it belongs to, so that the next agent recognises it. */
export const SYNCED_FOR = 'apisix-drain.io/service'

/** The Service that a node is marked with (`namespace/name`). */
export const markOf = ({ raw }: HolderNode): string | undefined =>
  typeof raw === 'string' ? undefined : textOf(fieldsOf(raw['metadata'])[SYNCED_FOR])

/** All Services that nodes of a holder are marked with. None if its nodes are a map, which has no room for a mark. */
export const marksOf = (holder: Holder | undefined): ReadonlySet<string> =>
  new Set(holder?.nodes.flatMap(node => markOf(node) ?? []))
