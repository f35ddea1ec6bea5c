import { notFound } from './errors.ts'
import type { DeleteOptions } from './deletion.ts'
import { wholeSeconds } from './deletion.ts'
import type { Deployment } from './objects.ts'
import { isFields } from './patch.ts'
import type { Store } from './store.ts'
import type { Target } from './target.ts'

/** The `autoscaling/v1` view of an object with replicas. */
export function readScale(store: Store, { resource, namespace, name = '' }: Target): object {
  const object = store.get(resource, namespace, name) as Deployment | undefined
  if (!object) throw notFound(resource, name)
  const { uid, resourceVersion, creationTimestamp } = object.metadata
  const selector = Object.entries(object.spec.selector.matchLabels ?? {})
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: object.spec.replicas ?? 1 },
    status: {
      replicas: object.status.replicas ?? 0,
      selector: selector.map(([key, value]) => `${key}=${value}`).join(',')
    }
  }
}

export function writeScale(store: Store, target: Target, scale: Readonly<Record<string, unknown>>): object {
  const replicas = isFields(scale.spec) ? Number(scale.spec.replicas ?? 0) : 0
  const metadata = isFields(scale.metadata) ? scale.metadata : {}
  const version = typeof metadata.resourceVersion === 'string' ? metadata.resourceVersion : undefined
  store.modify(target.resource, target.namespace, target.name ?? '', object => {
    const { metadata: meta, spec, ...rest } = object as Deployment
    return {
      ...rest,
      metadata: { ...meta, ...(version === undefined ? {} : { resourceVersion: version }) },
      spec: { ...spec, replicas }
    } as never
  })
  return readScale(store, target)
}

/** The eviction API: sets the condition DisruptionTarget, then deletes normally. There are no disruption budgets here. */
export function evict(
  store: Store,
  { namespace, name = '' }: Target,
  eviction: Readonly<Record<string, unknown>>
): object {
  if (!store.get('pods', namespace, name)) throw notFound('pods', name)
  store.patchStatus('pods', namespace, name, {
    conditions: [
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
        message: 'Eviction API: evicting',
        lastTransitionTime: wholeSeconds(store.now())
      }
    ]
  })
  store.delete(
    'pods',
    namespace,
    name,
    isFields(eviction.deleteOptions) ? (eviction.deleteOptions as DeleteOptions) : {}
  )
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
}
