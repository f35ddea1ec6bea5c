import type { HolderKey, Resource } from '../plan/holder.ts'

/** The revisions of etcd that a worker reports as applied. */
export interface Applied {
  /** The highest over all kinds of object; 0: none was read yet. */
  readonly revision?: number | null | undefined
  /** By kind of object, for the kinds that this APISIX has. */
  readonly revisions?: Readonly<Record<string, number>> | undefined
}

/**
 * The revision up to which a worker has applied one kind of object; `undefined` if it has not reported that. APISIX applies each kind
 * by itself (`apisix/core/config_etcd.lua`). After etcd was compacted or restored, one kind is read anew, while another waits seconds
 * for its next try. So the highest revision of all kinds proves nothing about one of them.
 */
const appliedOf = ({ revision, revisions }: Applied, kind: string): number | undefined =>
  (revisions?.[kind] ?? revision) || undefined

/** The revision up to which all of these workers have applied one kind of object; 0: some has not reported that. */
export const slowestOf = (workers: readonly Applied[], kind: string): number =>
  workers.reduce((least, worker) => Math.min(least, appliedOf(worker, kind) ?? 0), Infinity)

/** The kind of object that the holder is, or is a part of. */
export const kindOf = (holder: HolderKey): Resource => holder.split('/', 1)[0] as Resource
