import type {
  DiscoveryV1EndpointPort,
  V1Endpoint,
  V1EndpointConditions,
  V1EndpointSlice,
  V1ObjectMeta,
  V1ObjectReference
} from '@kubernetes/client-node'
import type { Endpoint, EndpointFact, PodUid, PodFact } from '../../rules/drain/facts.ts'
import { canonicalHost, fieldsOf, listOf, portOf, textOf, same } from '../../base/read.ts'
import { SERVICE_LABEL } from '../reflect/collection.ts'
import { identityOf } from '../transport/objects.ts'
import { intern, createMultiMap } from './pod-fact.ts'
import { MOST_PORTS } from '../../rules/plan/holder.ts'
import type { Sink } from '../reflect/follow.ts'

/** The API server accepts no more. */
const MOST_ENDPOINTS = 1000

/**
 * The needed fields of an EndpointSlice. It never fails: `undefined` only without an identity. `service` is empty for a slice that
 * belongs to no Service (custom slices may do that).
 */
export function toEndpointFact(object: unknown): EndpointFact | undefined {
  const slice = fieldsOf<V1EndpointSlice>(object)
  const meta = fieldsOf<V1ObjectMeta>(slice.metadata)
  const identity = identityOf(object)
  if (!identity) return undefined
  return {
    ...identity,
    namespace: intern.text(identity.namespace),
    service: intern.text(textOf(fieldsOf(meta.labels)[SERVICE_LABEL]) ?? ''),
    family: familyOf(slice.addressType),
    ports: listOf(slice.ports)
      .slice(0, MOST_PORTS + 1)
      .map(entry => {
        const { name: portName, port } = fieldsOf<DiscoveryV1EndpointPort>(entry)
        return { name: intern.text(textOf(portName) ?? ''), port: portOf(port) }
      }),
    endpoints: listOf(slice.endpoints)
      .slice(0, MOST_ENDPOINTS)
      .map(toEndpoint)
      .filter(endpoint => endpoint !== undefined)
  }
}

function familyOf(addressType: unknown): EndpointFact['family'] {
  return addressType === 'IPv6' || addressType === 'FQDN' ? addressType : 'IPv4'
}

/**
 * One endpoint. Absent conditions have the API's defaults (discovery/v1): ready is true, serving equals ready, terminating is
 * false. Only the first address counts, because all addresses of one endpoint are equivalent.
 */
function toEndpoint(value: unknown): Endpoint | undefined {
  const endpoint = fieldsOf<V1Endpoint>(value)
  const address = textOf(listOf(endpoint.addresses)[0])
  if (address === undefined) return undefined
  const conditions = fieldsOf<V1EndpointConditions>(endpoint.conditions)
  const target = fieldsOf<V1ObjectReference>(endpoint.targetRef)
  const ready = conditions.ready !== false
  const uid = target.kind === 'Pod' ? textOf(target.uid) : undefined
  return {
    address: canonicalHost(address),
    podUid: uid as PodUid | undefined,
    ready,
    serving: typeof conditions.serving === 'boolean' ? conditions.serving : ready,
    terminating: conditions.terminating === true
  }
}

export interface ServiceName {
  readonly namespace: string
  readonly name: string
}

/** The pod in question. Slices of other namespaces do not count, because their authors could invent anything about it. */
type PodName = Pick<PodFact, 'uid' | 'namespace'>

/** The EndpointSlices: the Services and ports of each pod. */
export type SliceStore = ReturnType<typeof createSliceStore>['store']

/** How many pods have their last slices kept: rarely do more pods than this end while one watch is ahead of the other. */
const MOST_LEFT = 2000
/** Services of one pod whose last slices are kept, the latest ones. */
const MOST_LEFT_OF_POD = 32

/** The store, and the interface that only its reflector may use. */
export function createSliceStore() {
  const slices = new Map<string, EndpointFact>()
  const byPod = createMultiMap<string, EndpointFact>()
  const byService = createMultiMap<string, EndpointFact>()

  /** The last slices of pods that a Service has dropped. The oldest pods are forgotten first. */
  const left = new Map<string, readonly EndpointFact[]>()

  let version = 0
  const remove = (slice: EndpointFact) => {
    version += 1
    slices.delete(slice.uid)
    byService.remove(serviceKey(slice.namespace, slice.service), slice)
    for (const pod of podsOf(slice)) byPod.remove(pod, slice)
  }
  const rememberLeft = (before: EndpointFact, now: ReadonlySet<string>) => {
    for (const pod of podsOf(before)) {
      if (now.has(pod)) continue
      const others = (left.get(pod) ?? []).filter(({ service }) => service !== before.service)
      left.delete(pod)
      left.set(pod, [...others, before].slice(-MOST_LEFT_OF_POD))
    }
    for (const pod of left.keys()) {
      if (left.size <= MOST_LEFT) break
      left.delete(pod)
    }
  }
  const set = (slice: EndpointFact) => {
    const before = slices.get(slice.uid)
    if (before && same(before, slice)) return false
    if (before) {
      remove(before)
      rememberLeft(before, podsOf(slice))
    }
    version += 1
    slices.set(slice.uid, slice)
    byService.add(serviceKey(slice.namespace, slice.service), slice)
    for (const pod of podsOf(slice)) byPod.add(pod, slice)
    return true
  }
  const gone = (uid: string) => {
    const slice = slices.get(uid)
    if (slice) {
      remove(slice)
      rememberLeft(slice, new Set())
    }
    return slice !== undefined
  }

  const sink: Sink<EndpointFact> = { set, gone }
  return {
    sink,
    store: {
      /** The resolved target ports at which slices list the pod, ascending, and few more than `MOST_PORTS`. They identify the nodes of a hostNetwork pod. */
      portsOf: (pod: PodName): readonly number[] => {
        const ports = new Set<number>()
        for (const slice of byPod.get(podKey(pod.namespace, pod.uid))) {
          for (const { port } of slice.ports) if (port !== undefined) ports.add(port)
          if (ports.size > MOST_PORTS) break
        }
        return [...ports].sort((a, b) => a - b)
      },
      servicesOf: (pod: PodName): readonly ServiceName[] => {
        const services = new Map<string, ServiceName>()
        for (const { namespace, service } of byPod.get(podKey(pod.namespace, pod.uid))) {
          if (service !== '') services.set(service, { namespace, name: service })
        }
        return [...services.values()]
      },
      /**
       * The slices that list the pod; for Services that have dropped it, the last slices that did. The slices may show an end before the
       * agent's watch of pods does.
       */
      listing(pod: PodName): readonly EndpointFact[] {
        const key = podKey(pod.namespace, pod.uid)
        const now = byPod.get(key)
        const services = new Set(now.map(({ service }) => service))
        return [...now, ...(left.get(key) ?? []).filter(({ service }) => !services.has(service))]
      },
      /**
       * Endpoints of a Service that can still answer (`serving`), over all its slices, each (pod, address) once. Terminating
       * ones are included: the caller decides whether they count.
       */
      serving: (namespace: string, service: string): readonly Endpoint[] => {
        const serving = new Map<string, Endpoint>()
        for (const slice of byService.get(serviceKey(namespace, service))) {
          for (const endpoint of slice.endpoints) {
            if (endpoint.serving) serving.set(`${endpoint.podUid ?? ''} ${endpoint.address}`, endpoint)
          }
        }
        return [...serving.values()]
      },
      /** The slices of a Service. Facts are immutable: the same object means no change. */
      of: (namespace: string, service: string) => byService.get(serviceKey(namespace, service)),
      /** Whether some endpoint has this address. It scans all endpoints, so call it rarely. */
      lists: (address: string): boolean =>
        slices.values().some(({ endpoints }) => endpoints.some(endpoint => endpoint.address === address)),
      get size() {
        return slices.size
      },
      /** Goes up with each change of a slice. */
      version: () => version
    }
  }
}

const serviceKey = (namespace: string, service: string) => `${namespace}/${service}`

const podKey = (namespace: string, uid: string) => `${namespace} ${uid}`

/** The keys of the pods that a slice lists. A slice of another namespace than the pod's has another key. */
function podsOf({ namespace, endpoints }: EndpointFact): ReadonlySet<string> {
  const pods = new Set<string>()
  for (const { podUid } of endpoints) if (podUid !== undefined) pods.add(podKey(namespace, podUid))
  return pods
}
