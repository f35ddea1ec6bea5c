import { notFound } from './errors.ts'
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
