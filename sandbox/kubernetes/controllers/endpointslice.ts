import type { EndpointSlice, Service } from '../objects.ts'
import { hasLabels } from '../selectors.ts'
import type { Store } from '../store.ts'
import { take, type Bucket, type Rate } from './bucket.ts'
import { keyOf, referenceTo, splitKey } from './owned.ts'
import { createQueue } from './queue.ts'
import { planSlices } from './slices.ts'

export interface EndpointSliceOptions {
  /** The delay from a change to the check of the slices; default 0. All changes during the delay cost one write. */
  readonly lagMs?: number | (() => number)
  /** Writes per second, as kube-controller-manager limits itself (`KCM_RATE`). Default: no limit. */
  readonly rate?: Rate
  /** Endpoints per slice; default 100. */
  readonly perSlice?: number
}

const SERVICE = 'kubernetes.io/service-name'
const MANAGED = { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' }

/** Keeps the EndpointSlices of every Service with a selector. Returns the function that stops it. */
export function startEndpointSlices(store: Store, options: EndpointSliceOptions = {}): () => void {
  const { lagMs = 0, rate, perSlice = 100 } = options
  const writes: (() => void)[] = []
  const scheduled = new Set<string>()
  const busy = new Map<string, number>()
  let bucket: Bucket = { tokens: rate?.burst ?? 0, at: store.now() }
  let timer: NodeJS.Timeout | undefined

  /** Writes in order, each when the bucket has a token for it. */
  const pump = () => {
    timer = undefined
    for (let next = writes[0]; next; next = writes[0]) {
      if (rate) {
        const taken = take(bucket, rate, store.now())
        if (taken.waitMs > 0) {
          timer = setTimeout(pump, Math.max(taken.waitMs, 1))
          return
        }
        bucket = taken.bucket
      }
      writes.shift()
      next()
    }
  }

  const slicesOf = (service: Service): EndpointSlice[] =>
    store
      .list('endpointslices', { namespace: service.metadata.namespace })
      .filter(({ metadata }) => hasLabels(metadata.labels, { [SERVICE]: service.metadata.name, ...MANAGED }))

  const reconcile = (key: string) => {
    const [namespace, name] = splitKey(key)
    const service = store.get('services', namespace, name)
    if (!service?.spec.selector) return
    const pods = store
      .list('pods', { namespace })
      .filter(({ metadata }) => hasLabels(metadata.labels, service.spec.selector))
    const { create, update, remove } = planSlices(service, pods, slicesOf(service), perSlice)
    const work: (() => void)[] = [
      ...create.map(slice => () => {
        if (store.get('services', namespace, name)?.metadata.uid !== service.metadata.uid) return
        store.create('endpointslices', {
          ...slice,
          metadata: {
            namespace,
            generateName: `${name}-`,
            labels: { ...service.metadata.labels, [SERVICE]: name, ...MANAGED },
            ownerReferences: [referenceTo(service)]
          }
        })
      }),
      ...update.map(slice => () => {
        // If a client has deleted or changed the slice since, the next pass corrects that.
        const now = store.get('endpointslices', namespace, slice.metadata.name)
        if (now?.metadata.resourceVersion === slice.metadata.resourceVersion)
          store.update('endpointslices', slice)
      }),
      ...remove.map(slice => () => {
        if (store.get('endpointslices', namespace, slice.metadata.name))
          store.delete('endpointslices', namespace, slice.metadata.name)
      })
    ]
    if (work.length === 0) return
    // A Service is checked again only after its writes, as if a worker were busy with it until then.
    busy.set(key, work.length)
    for (const one of work)
      writes.push(() => {
        one()
        const left = (busy.get(key) ?? 1) - 1
        if (left > 0) busy.set(key, left)
        else {
          busy.delete(key)
          if (scheduled.delete(key)) queue.add(key)
        }
      })
    if (!timer) pump()
  }
  const queue = createQueue(key => {
    if (busy.has(key)) scheduled.add(key)
    else reconcile(key)
  })
  const waiting = new Set<string>()
  const later = createQueue(key => {
    waiting.delete(key)
    queue.add(key)
  })
  const look = (key: string) => {
    const ms = typeof lagMs === 'number' ? lagMs : lagMs()
    if (ms <= 0) return queue.add(key)
    if (waiting.has(key)) return undefined
    waiting.add(key)
    return later.addLater(key, ms)
  }

  const stops = [
    store.onChange('services', ({ object }) => look(keyOf(object))),
    store.onChange('pods', ({ object, previous }) => {
      for (const service of store.list('services', { namespace: object.metadata.namespace }))
        if (
          hasLabels(object.metadata.labels, service.spec.selector) ||
          hasLabels(previous?.metadata.labels, service.spec.selector)
        )
          look(keyOf(service))
    }),
    // Corrects another writer's change to the controller's slice.
    store.onChange('endpointslices', ({ object }) => {
      const owner = object.metadata.labels?.[SERVICE]
      if (owner !== undefined && hasLabels(object.metadata.labels, MANAGED))
        look(`${object.metadata.namespace ?? ''}/${owner}`)
    })
  ]
  for (const service of store.list('services')) look(keyOf(service))
  return () => {
    for (const stop of stops) stop()
    queue.stop()
    later.stop()
    clearTimeout(timer)
    writes.length = 0
  }
}
