import type { HolderKey, Resource } from '../plan/holder.ts'

/** The revisions of etcd that a worker reports as applied. */
export interface Applied {
  /** The highest over all kinds of object. 0: it has not read them yet. */
  readonly revision?: number | null | undefined
  /** By kind of object. Absent in an older plugin, and for a kind that this APISIX does not have. */
  readonly revisions?: Readonly<Record<string, number>> | undefined
}

/**
 * The revision up to which a worker has applied one kind of object; `undefined` if it has not reported it. APISIX applies each
 * kind by itself (`apisix/core/config_etcd.lua`): when etcd was compacted or restored, one is read anew while the next try
 * of another is seconds away. So the highest revision of all kinds proves nothing about one of them.
 */
export const appliedOf = ({ revision, revisions }: Applied, kind: string): number | undefined =>
  (revisions?.[kind] ?? revision) || undefined

/** The kind of object that a holder is, or is part of. */
export const kindOf = (holder: HolderKey): Resource => holder.split('/', 1)[0] as Resource
