import { setTimeout as wait } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { now } from '../now.ts'
import { createRandom } from '../random.ts'
import type { AdcObjects, AdcTarget } from './adc-target.ts'
import type { OwnedService, Owner, OwnerWrite } from './owner.ts'
import { readyNodes, type SliceSource, type UpstreamNode } from './slices.ts'

export interface AdcOptions {
  readonly slices: SliceSource
  readonly services: readonly OwnedService[]
  readonly target: AdcTarget
  /** From the start of a sync to its first write, a random number of ms: the dump and the comparison of all objects. */
  readonly syncMs: { readonly minMs: number; readonly maxMs: number }
  /** The period of syncs without an event: one minute in the chart, one hour in the controller itself. */
  readonly periodMs: number
  readonly seed: number
}

/** One route rule per Service: `<namespace>_<route>_<rule>` (httproute.go:703), the id of both service and upstream. */
const ruleName = ({ namespace, name }: OwnedService): string => `${namespace}_${name}_0`

export const adcId = (service: OwnedService): string => crc32(ruleName(service)).toString(16)

/** A route's name adds the number of the match in its rule, and its id follows from that name. */
export const adcRouteId = (service: OwnedService): string => crc32(`${ruleName(service)}-0`).toString(16)

/** Weight of a Gateway API or Ingress backend (httproute.go:418). */
const WEIGHT = 1

/**
 * Writes like the ingress controller 2.x through ADC. Every change of an EndpointSlice, and the period, ask for one full
 * sync; requests during a sync merge into one (a channel of capacity 1, provider.go:301). A sync writes the state that it
 * read at its start, however long it takes. So it restores nodes that another writer, or Kubernetes, has removed meanwhile.
 */
export function startAdc({ slices, services, target, syncMs, periodMs, seed }: AdcOptions): Owner {
  const random = createRandom(seed)
  const stopped = new AbortController()
  const writes: OwnerWrite[] = []
  let leads = true
  let called: number | undefined = now()
  let wake = () => {}

  const call = (): void => {
    called ??= now()
    wake()
  }
  const nodesOf = (service: OwnedService): UpstreamNode[] =>
    readyNodes(slices.list(), `${service.namespace}/${service.name}`, WEIGHT)

  const sync = async (eventAt: number): Promise<void> => {
    const all = services.map(service => ({ service, nodes: nodesOf(service) }))
    await wait(syncMs.minMs + random() * (syncMs.maxMs - syncMs.minMs), undefined, { signal: stopped.signal })
    const failure = await target(objectsOf(all)).then(
      () => undefined,
      (error: unknown) => error
    )
    const acceptedAt = failure === undefined ? now() : undefined
    for (const { service, nodes } of all)
      writes.push({ service: `${service.namespace}/${service.name}`, eventAt, acceptedAt, nodes })
    if (failure !== undefined) setTimeout(call, RETRY_MS).unref()
  }
  const work = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const eventAt = called
      if (eventAt === undefined || !leads) {
        await new Promise<void>(resolve => (wake = resolve))
        continue
      }
      called = undefined
      await sync(eventAt)
    }
  }
  const unsubscribe = slices.onChange(call)
  const timer = setInterval(call, periodMs)
  const working = work().catch(() => {}) // rejects only when stopped

  return {
    writes,
    lead(next) {
      leads = next
      if (next) call()
    },
    async close() {
      unsubscribe()
      clearInterval(timer)
      stopped.abort()
      wake()
      await working
    }
  }
}

/** The first pause between its retries (provider.go:48); it doubles. */
const RETRY_MS = 1000

function objectsOf(
  all: readonly { readonly service: OwnedService; readonly nodes: readonly UpstreamNode[] }[]
): AdcObjects {
  const named = all.map(({ service, nodes }) => {
    const labels = {
      'k8s/kind': 'HTTPRoute',
      'k8s/namespace': service.namespace,
      'k8s/name': service.name,
      'manager-by': 'apisix-ingress-controller'
    }
    return { id: adcId(service), route: adcRouteId(service), name: ruleName(service), labels, nodes }
  })
  return {
    upstreams: named.map(({ id, name, nodes }) => ({
      id,
      name,
      labels: { 'managed-by': 'apisix-ingress-controller' },
      type: 'roundrobin',
      nodes
    })),
    services: named.map(({ id, name, labels }) => ({ id, name, labels, upstream_id: id })),
    routes: named.map(({ id, route, name, labels }) => ({
      id: route,
      name: `${name}-0`,
      labels,
      uris: ['/*'],
      service_id: id
    }))
  }
}
