import { setTimeout as wait } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { now } from '../now.ts'
import { createRandom } from '../random.ts'
import { putObject, type AdminAccess } from './put.ts'
import { readyNodes, serviceOf, type SliceSource, type UpstreamNode } from './slices.ts'

export interface OwnedService {
  readonly namespace: string
  readonly name: string
  /** The Service's port: part of the upstream's name. */
  readonly port: number
  /** A subset of an ApisixUpstream: an upstream of its own, with those nodes whose pods have the subset's labels. */
  readonly subset?: { readonly name: string; readonly takes: (host: string) => boolean }
}

export interface OwnerOptions {
  readonly slices: SliceSource
  readonly admin: AdminAccess
  readonly services: readonly OwnedService[]
  /** The random delay from an event until its turn, in ms. It stands for the queue, the syncs of other Services, the leader and etcd. */
  readonly lag: { readonly minMs: number; readonly maxMs: number }
  readonly seed: number
}

export interface OwnerWrite {
  readonly service: string
  /** When the event came, and when its write was accepted (`undefined`: it failed), by `now()`. */
  readonly eventAt: number
  readonly acceptedAt: number | undefined
  readonly nodes: readonly UpstreamNode[]
}

export interface Owner {
  readonly writes: readonly OwnerWrite[]
  close(): Promise<void>
}

/** `NewItemFastSlowRateLimiter(1s, 60s, 5)` (endpoint.go:49). */
const retryMs = (failures: number) => (failures <= 5 ? 1000 : 60_000)

/** Every node has this weight (pkg/providers/translation/translator.go:30). */
const WEIGHT = 100

/** `<namespace>_<service>[_<subset>]_<port>` (pkg/types/apisix/v1/types.go:598). */
const upstreamName = ({ namespace, name, port, subset }: OwnedService) =>
  [namespace, name, ...(subset ? [subset.name] : []), port].join('_')

/** crc32 of the name in hex, not zero padded (pkg/id/idgen.go:26). */
export const upstreamId = (service: OwnedService): string => crc32(upstreamName(service)).toString(16)

/**
 * Writes upstreams exactly as the ingress controller 1.8 does. One worker takes one event after another, without debounce
 * or deduplication. It compares with its own cache and never reads APISIX, and it PUTs the whole object. So it
 * restores nodes that another writer has removed, if another event comes first.
 */
export function startOwner(options: OwnerOptions): Owner {
  const { slices, admin, lag } = options
  const random = createRandom(options.seed)
  const stopped = new AbortController()
  const cache = new Map<string, string>()
  const writes: OwnerWrite[] = []
  const queue: { service: OwnedService; eventAt: number; dueAt: number; failures: number }[] = []
  let wake = () => {}

  const enqueue = (service: OwnedService, delayMs: number, failures = 0) => {
    queue.push({ service, eventAt: now(), dueAt: now() + delayMs, failures })
    wake()
  }
  const drawnLag = () => lag.minMs + random() * (lag.maxMs - lag.minMs)

  const sync = async (service: OwnedService, eventAt: number) => {
    const name = `${service.namespace}/${service.name}`
    const takes = service.subset?.takes ?? (() => true)
    const nodes = readyNodes(slices.list(), name, WEIGHT).filter(({ host }) => takes(host))
    const wanted = JSON.stringify(nodes)
    if (cache.get(upstreamId(service)) === wanted) return
    const write = { service: name, eventAt, nodes }
    try {
      await putObject(admin, `upstreams/${upstreamId(service)}`, upstream(service, nodes))
      cache.set(upstreamId(service), wanted)
      writes.push({ ...write, acceptedAt: now() })
    } catch (error) {
      writes.push({ ...write, acceptedAt: undefined })
      throw error
    }
  }

  /** The only worker. Events that are not due yet wait behind the first one, as in any queue. */
  const work = async () => {
    while (!stopped.signal.aborted) {
      const item = queue[0]
      if (!item) {
        await new Promise<void>(resolve => (wake = resolve))
        continue
      }
      if (item.dueAt > now()) await wait(item.dueAt - now(), undefined, { signal: stopped.signal })
      queue.shift()
      await sync(item.service, item.eventAt).catch(() =>
        setTimeout(() => enqueue(item.service, 0, item.failures + 1), retryMs(item.failures + 1)).unref()
      )
    }
  }

  const unsubscribe = slices.onChange(slice => {
    // One event writes all subsets of its Service, one after another (pkg/providers/k8s/endpoint/base.go:83).
    const lagMs = drawnLag()
    for (const service of options.services)
      if (serviceOf(slice) === `${service.namespace}/${service.name}`) enqueue(service, lagMs)
  })
  // At its start the controller fills its cache, and writes everything at once.
  for (const service of options.services) enqueue(service, 0)
  const working = work().catch(() => {}) // rejects only when stopped

  return {
    writes,
    async close() {
      unsubscribe()
      stopped.abort()
      wake()
      await working
    }
  }
}

/** The object that 1.8.4 writes; `test/install/controller.test.ts` compares it with the real one's. */
export const upstream = (service: OwnedService, nodes: readonly UpstreamNode[]) => ({
  name: upstreamName(service),
  desc: 'Created by apisix-ingress-controller, DO NOT modify it manually',
  labels: { 'managed-by': 'apisix-ingress-controller' },
  type: 'roundrobin',
  scheme: 'http',
  nodes
})
