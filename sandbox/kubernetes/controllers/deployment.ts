import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { wholeSeconds } from '../deletion.ts'
import type { Condition, Deployment, Draft, PodTemplate, ReplicaSet } from '../objects.ts'
import type { Store } from '../store.ts'
import { controllerOf, keyOf, ownedBy, referenceTo, splitKey } from './owned.ts'
import { createQueue } from './queue.ts'
import { armOf, boundsOf, newSetSize, oldSetSizes, recreateSizes } from './rollout.ts'

const HASH = 'pod-template-hash'
const REVISION = 'deployment.kubernetes.io/revision'

/** Ten characters that depend only on the template. */
const templateHash = (template: PodTemplate): string =>
  createHash('sha256').update(JSON.stringify(template)).digest('hex').slice(0, 10)

const revisionOf = (set: ReplicaSet): number => Number(set.metadata.annotations?.[REVISION] ?? 0)

const newSet = (deployment: Deployment, hash: string, revision: number): Draft<ReplicaSet> => {
  const { template, selector } = deployment.spec
  const labels = { ...template.metadata?.labels, [HASH]: hash }
  return {
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace ?? 'default',
      labels,
      annotations: { [REVISION]: `${revision}` },
      ownerReferences: [referenceTo(deployment)]
    },
    spec: {
      replicas: 0,
      selector: { matchLabels: { ...selector.matchLabels, [HASH]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } }
    }
  }
}

/** Status of a deployment from its sets. */
function deploymentStatus(
  deployment: Deployment,
  fresh: ReplicaSet | undefined,
  sets: readonly ReplicaSet[],
  now: number
): Deployment['status'] {
  const total = (of: (status: ReplicaSet['status']) => number | undefined) =>
    sets.reduce((sum, set) => sum + (of(set.status) ?? 0), 0)
  const { replicas, maxUnavailable } = boundsOf(deployment)
  const available = total(status => status.availableReplicas)
  const all = total(status => status.replicas)
  const updated = fresh?.status.replicas ?? 0
  const complete = updated === replicas && all === replicas && available === replicas
  const condition = (type: string, holds: boolean, reason: string): Condition => {
    const status = holds ? 'True' : 'False'
    const before = deployment.status.conditions?.find(one => one.type === type)
    const unchanged = before?.status === status && before.reason === reason
    const at = wholeSeconds(now)
    return {
      type,
      status,
      reason,
      lastUpdateTime: unchanged ? (before.lastUpdateTime ?? at) : at,
      lastTransitionTime: before?.status === status ? (before.lastTransitionTime ?? at) : at
    }
  }
  const enough = available >= replicas - maxUnavailable
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: all,
    updatedReplicas: updated,
    readyReplicas: total(status => status.readyReplicas),
    availableReplicas: available,
    conditions: [
      condition('Available', enough, enough ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable'),
      condition('Progressing', true, complete ? 'NewReplicaSetAvailable' : 'ReplicaSetUpdated')
    ]
  }
}

/** Rolls each Deployment's template out over ReplicaSets. Returns the function that stops it. */
export function startDeployments(store: Store): () => void {
  const scale = (set: ReplicaSet, replicas: number) => {
    if ((set.spec.replicas ?? 1) === replicas) return
    store.modify('replicasets', set.metadata.namespace, set.metadata.name, now => ({
      ...now,
      spec: { ...now.spec, replicas }
    }))
  }

  const setsOf = (deployment: Deployment) =>
    store
      .list('replicasets', { namespace: deployment.metadata.namespace })
      .filter(ownedBy(deployment))
      .toSorted((a, b) => revisionOf(a) - revisionOf(b))

  /** Makes sure that the set for the current template exists and has the highest revision. */
  const freshSet = (deployment: Deployment, hash: string): ReplicaSet => {
    const sets = setsOf(deployment)
    const others = sets.filter(set => set.metadata.labels?.[HASH] !== hash)
    const found = sets.find(set => set.metadata.labels?.[HASH] === hash)
    const revision = Math.max(0, ...others.map(revisionOf)) + 1
    if (!found) return store.create('replicasets', newSet(deployment, hash, revision))
    if (revisionOf(found) >= revision) return found
    // A rollback: the old set becomes the newest.
    return store.modify('replicasets', found.metadata.namespace, found.metadata.name, set => ({
      ...set,
      metadata: { ...set.metadata, annotations: { ...set.metadata.annotations, [REVISION]: `${revision}` } }
    }))
  }

  const roll = (deployment: Deployment, fresh: ReplicaSet, old: readonly ReplicaSet[]) => {
    const [arm, arms] = [armOf(fresh), old.map(armOf)]
    const bounds = boundsOf(deployment)
    if (deployment.spec.strategy?.type === 'Recreate') {
      const owners = new Set(old.map(({ metadata }) => metadata.uid))
      const left = store
        .list('pods', { namespace: deployment.metadata.namespace })
        .filter(pod => owners.has(controllerOf(pod)?.uid ?? ''))
        .filter(({ status }) => status.phase !== 'Succeeded' && status.phase !== 'Failed').length
      const sizes = recreateSizes(arm, arms, bounds.replicas, left)
      for (const set of [...old, fresh]) scale(set, sizes.get(set.metadata.name) ?? 0)
      return
    }
    const size = newSetSize(arm, arms, bounds)
    // One step per pass, as in Kubernetes: this step would make the counts below outdated.
    if (size !== arm.wanted) return scale(fresh, size)
    const sizes = oldSetSizes(arm, arms, bounds)
    for (const set of old) scale(set, sizes.get(set.metadata.name) ?? 0)
  }

  const queue = createQueue(key => {
    const [namespace, name] = splitKey(key)
    const deployment = store.get('deployments', namespace, name)
    if (!deployment || deployment.metadata.deletionTimestamp) return
    const hash = templateHash(deployment.spec.template)
    const newest = freshSet(deployment, hash)
    const others = setsOf(deployment).filter(({ metadata }) => metadata.uid !== newest.metadata.uid)
    roll(deployment, newest, others)
    const sets = setsOf(deployment)
    const fresh = sets.find(set => set.metadata.labels?.[HASH] === hash)
    const revision = fresh?.metadata.annotations?.[REVISION]
    if (revision !== undefined && deployment.metadata.annotations?.[REVISION] !== revision)
      store.modify('deployments', namespace, name, now => ({
        ...now,
        metadata: { ...now.metadata, annotations: { ...now.metadata.annotations, [REVISION]: revision } }
      }))
    const status = deploymentStatus(deployment, fresh, sets, store.now())
    if (!isDeepStrictEqual(status, deployment.status))
      store.patchStatus('deployments', namespace, name, { ...status })
  })
  const stopDeployments = store.onChange('deployments', ({ type, object }) => {
    if (type !== 'DELETED') queue.add(keyOf(object))
  })
  const owner = (object: ReplicaSet) => {
    const reference = controllerOf(object)
    if (reference?.kind === 'Deployment') queue.add(`${object.metadata.namespace ?? ''}/${reference.name}`)
  }
  const stopSets = store.onChange('replicasets', ({ object }) => owner(object))
  // Recreate waits for the last pod object to go.
  const stopPods = store.onChange('pods', ({ type, object }) => {
    const reference = type === 'DELETED' ? controllerOf(object) : undefined
    const set = reference && store.get('replicasets', object.metadata.namespace, reference.name)
    if (set) owner(set)
  })
  for (const deployment of store.list('deployments')) queue.add(keyOf(deployment))
  return () => {
    stopDeployments()
    stopSets()
    stopPods()
    queue.stop()
  }
}
