import type { KubeObject, Meta, Pod } from './objects.ts'
import type { ResourceName } from './resources.ts'

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  /** The delete is refused with 409 if the object has another uid or resourceVersion. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

/** The effect of a DELETE on the stored object: it can be marked as ending (`marked`), removed (`remove`), or both. */
interface Deletion<T extends KubeObject> {
  readonly marked: T | undefined
  readonly remove: boolean
}

/** Kubernetes writes whole seconds, rounded down. */
export const wholeSeconds = (millis: number): string =>
  `${new Date(Math.floor(millis / 1000) * 1000).toISOString().slice(0, 19)}Z`

/** The grace in seconds. It is 0 for other kinds, and for a pod without a host or after its end (CheckGracefulDelete). */
function graceOf(resource: ResourceName, object: KubeObject, asked: number | undefined): number {
  if (resource !== 'pods') return 0
  const { spec, status } = object as Pod
  if (!spec.nodeName || status.phase === 'Succeeded' || status.phase === 'Failed') return 0
  const grace = asked ?? spec.terminationGracePeriodSeconds ?? 30
  return grace < 0 ? 1 : grace
}

const withMeta = <T extends KubeObject>(object: T, meta: Partial<Meta>): T => ({
  ...object,
  metadata: { ...object.metadata, ...meta }
})

/** The rules of the API server's BeforeDelete, for an object whose preconditions hold. `now` in ms since the epoch. */
export function decideDeletion<T extends KubeObject>(
  resource: ResourceName,
  object: T,
  options: DeleteOptions,
  now: number
): Deletion<T> {
  const { deletionTimestamp, deletionGracePeriodSeconds: before = 0, finalizers } = object.metadata
  const held = (finalizers?.length ?? 0) > 0

  if (deletionTimestamp === undefined) {
    const grace = graceOf(resource, object, options.gracePeriodSeconds)
    // Kinds other than pods are deleted at once, without a last event MODIFIED.
    if (resource !== 'pods' && !held) return { marked: undefined, remove: true }
    const marked = withMeta(object, {
      deletionTimestamp: wholeSeconds(now + grace * 1000),
      deletionGracePeriodSeconds: grace,
      generation: (object.metadata.generation ?? 0) + 1
    })
    return { marked, remove: grace === 0 && !held }
  }

  const asked = options.gracePeriodSeconds
  // A later delete can only shorten the grace, which counts from the first delete.
  if (asked !== undefined && asked < before) {
    const grace = Math.max(asked, 0)
    const marked = withMeta(object, {
      deletionTimestamp: wholeSeconds(Date.parse(deletionTimestamp) - (before - grace) * 1000),
      deletionGracePeriodSeconds: grace
    })
    return { marked, remove: grace === 0 && !held }
  }
  return { marked: undefined, remove: before === 0 && !held }
}

/** Whether an ending object can be removed: it has no finalizer, and its grace is over. */
export const isFinished = (object: KubeObject): boolean =>
  object.metadata.deletionTimestamp !== undefined &&
  (object.metadata.finalizers?.length ?? 0) === 0 &&
  (object.metadata.deletionGracePeriodSeconds ?? 0) === 0
