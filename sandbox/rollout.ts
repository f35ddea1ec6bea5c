import { now } from './now.ts'
import { APP, NAMESPACE, withVersion } from './manifests.ts'
import type { Kubelet } from './kubelet/kubelet.ts'
import type { Store } from './kubernetes/store.ts'
import { waitFor } from './wait-for.ts'

/** The progress of a rolling update. */
export interface RolloutState {
  readonly replicas: number
  /** Pods of the new template that are available. */
  readonly available: number
  /** Old pods that are ending, and old pods that are gone. */
  readonly ending: number
  readonly gone: number
}

/** Whether only pods of the Deployment's newest template are left: `kubectl rollout status`. */
export function isRolledOut(store: Store): boolean {
  const found = store.get('deployments', NAMESPACE, APP)
  if (!found) return false
  const { replicas } = found.spec
  const { status } = found
  return (
    status.observedGeneration === found.metadata.generation &&
    status.updatedReplicas === replicas &&
    status.replicas === replicas &&
    status.availableReplicas === replicas
  )
}

interface RolloutOptions {
  readonly store: Store
  readonly kubelet: Kubelet
  readonly onProgress?: (state: RolloutState) => void
  readonly signal?: AbortSignal | undefined
}

/**
 * Changes the template and waits until every new pod is available and every old one gone.
 * @returns how long that took, in ms.
 */
export async function rollOut(options: RolloutOptions): Promise<number> {
  const { store, kubelet, onProgress } = options
  const old = kubelet.records().filter(({ goneAt }) => goneAt === undefined)
  const oldUids = new Set(old.map(({ uid }) => uid))
  const startedAt = now()
  const changed = store.modify('deployments', NAMESPACE, APP, current =>
    withVersion(current, String(startedAt))
  )
  const finished = () => {
    const gone = old.filter(({ goneAt }) => goneAt !== undefined).length
    onProgress?.({
      replicas: changed.spec.replicas ?? 0,
      available: kubelet
        .records()
        .filter(
          ({ uid, readyAt, goneAt }) => readyAt !== undefined && goneAt === undefined && !oldUids.has(uid)
        ).length,
      ending: old.filter(({ deletionSeenAt }) => deletionSeenAt !== undefined).length,
      gone
    })
    return gone === old.length && isRolledOut(store)
  }
  await waitFor('the rolling update is complete', finished, options)
  return now() - startedAt
}
