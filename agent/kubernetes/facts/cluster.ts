import { createListeners, type Clock } from '../../base/clock.ts'
import type { GatewayFact, PodFact } from '../../rules/drain/facts.ts'
import type { Log } from '../../base/log.ts'
import { ApiError } from '../transport/objects.ts'
import { pathOf, podsIn, servicesIn, slicesIn, slicesOf, type Collection } from '../reflect/collection.ts'
import { createConnection, patiently, type ConnectionSettings, type Reply } from '../transport/connection.ts'
import type { Credentials } from '../transport/credentials.ts'
import { isLocal, gatewayPodReader, staticGateway, createGatewayStore } from './gateway-store.ts'
import { toEndpointFact, createSliceStore, type ServiceName } from './slice-store.ts'
import { combine, staticPart, type Part, type PartName } from '../reflect/watch-status.ts'
import { toPodFact } from './pod-fact.ts'
import { createPodStore } from './pod-store.ts'
import { fieldsOf, listOf } from '../../base/read.ts'
import { startReflector, type ReflectorSettings, type Reflector } from '../reflect/reflector.ts'
import { toServiceFact, createServiceStore } from './service-store.ts'
import type { Sink } from '../reflect/follow.ts'

/** How to find the gateways: a selector of their pods, or their addresses if an operator lists them. */
export type GatewaySelector =
  | { readonly namespace?: string | undefined; readonly labelSelector: string }
  | { readonly static: readonly { readonly name: string; readonly host: string }[] }

export interface ClusterOptions {
  readonly credentials: Credentials
  /** The namespaces whose pods, slices and Services are watched; all if absent or empty. */
  readonly namespaces?: readonly string[] | undefined
  readonly gatewaySelector: GatewaySelector
  readonly clock: Clock
  readonly log: Log
  readonly reflector?: Partial<ReflectorSettings>
  readonly connection?: Partial<ConnectionSettings>
}

/** All knowledge about Kubernetes, kept current by four watches over one connection. */
export type Cluster = ReturnType<typeof startCluster>

/** Starts all watches, and keeps the stores that they fill. */
export function startCluster(options: ClusterOptions) {
  const { credentials, gatewaySelector: gatewaysAre, clock, log } = options
  const listeners = createListeners()
  const connection = createConnection(credentials, clock, options.connection)
  const scopes: readonly (string | undefined)[] = options.namespaces?.length
    ? options.namespaces
    : [undefined]
  const pods = createPodStore(clock)
  const slices = createSliceStore()
  const services = createServiceStore()
  const fixed = 'static' in gatewaysAre ? gatewaysAre.static.map(staticGateway) : []
  const gateways = createGatewayStore(() => clock.now(), fixed)

  const reflect = <F extends { readonly uid: string }>(
    watch: PartName,
    collection: Collection,
    toFact: (object: unknown) => F | undefined,
    sink: Sink<F>
  ): Reflector =>
    startReflector({
      connection,
      collection,
      toFact,
      sink,
      clock,
      log: log.child({ watch }),
      onChange: listeners.notify,
      ...(options.reflector && { settings: options.reflector })
    })
  const watches: Readonly<Record<PartName, readonly Reflector[]>> = {
    pods: scopes.map(ns => reflect('pods', podsIn(ns), toPodFact, pods.sink)),
    endpointslices: scopes.map(ns => reflect('endpointslices', slicesIn(ns), toEndpointFact, slices.sink)),
    gateways:
      'static' in gatewaysAre
        ? []
        : [
            reflect(
              'gateways',
              podsIn(gatewaysAre.namespace, gatewaysAre.labelSelector),
              gatewayPodReader(isLocal(credentials.origin)),
              gateways.sink
            )
          ],
    services: scopes.map(ns => reflect('services', servicesIn(ns), toServiceFact, services.sink))
  }
  const call = (method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Reply> =>
    patiently(() => connection.request(method, path, body, signal), {
      clock,
      signal,
      harmless: method === 'GET'
    })
  const get = async (path: string, signal: AbortSignal | undefined): Promise<unknown> => {
    const reply = await call('GET', path, undefined, signal)
    if (reply.status === 404) return undefined
    if (reply.status !== 200) throw new ApiError(`GET ${path}`, reply.status, reply.json, reply.retryAfterMs)
    return reply.json
  }
  /** Only for objects that a watch covers: nothing would ever remove other objects from the store. */
  const watchOf = (name: PartName, namespace: string): Reflector | undefined =>
    watches[name][Math.max(scopes.indexOf(namespace), scopes.indexOf(undefined))]
  const learn = (object: unknown): PodFact | undefined => {
    const fact = toPodFact(object)
    if (fact) watchOf('pods', fact.namespace)?.learn(object)
    return fact
  }
  const itemsOf = async (collection: Collection, fieldSelector: string | undefined, signal?: AbortSignal) =>
    listOf(fieldsOf(await get(pathOf(collection, { fieldSelector }), signal))['items'])
  const part = (name: PartName): Part => {
    const all = watches[name].map(watch => watch.status())
    return all.length === 0 ? staticPart(name, fixed.length) : combine(name, all)
  }

  return {
    pods: pods.store,
    slices: slices.store,
    /** Empty if the agent may not read them. */
    services: services.store,
    /** Every gateway that may serve. */
    gateways: (): readonly GatewayFact[] => gateways.store.list(),
    /** Call it when a gateway can route no requests, so that it leaves the list until its pod changes. */
    gatewayEnded(id: string) {
      gateways.store.ended(id)
      listeners.notify()
    },
    parts: (): readonly Part[] => [part('pods'), part('endpointslices'), part('gateways'), part('services')],
    /**
     * The pod as the API server has it right now, without the watch; the stores learn of it. `undefined` = no such pod.
     * @throws ApiError on any status but 200 and 404; Error without an answer
     */
    async fetchPod(namespace: string, name: string, signal?: AbortSignal) {
      const path = `${podsIn(namespace).path}/${encodeURIComponent(name)}`
      return learn(await get(path, signal))
    },
    /** Pods that own this address, read from the API server, as with `fetchPod`. */
    async fetchPodsByIp(ip: string, signal?: AbortSignal): Promise<readonly PodFact[]> {
      const found: PodFact[] = []
      for (const namespace of scopes) {
        for (const item of await itemsOf(podsIn(namespace), `status.podIP=${ip}`, signal)) {
          const pod = learn(item)
          if (pod?.ips.includes(ip)) found.push(pod)
        }
      }
      return found
    },
    /** Reads a Service and its EndpointSlices into the stores, without the watch. `false`: no such Service. */
    async fetchService({ namespace, name }: ServiceName, signal?: AbortSignal) {
      // As lists, because the agent may list them but not get them.
      const [found, slices] = await Promise.all([
        itemsOf(servicesIn(namespace), `metadata.name=${name}`, signal),
        itemsOf(slicesOf(namespace, name), undefined, signal)
      ])
      for (const service of found) watchOf('services', namespace)?.learn(service)
      for (const slice of slices) watchOf('endpointslices', namespace)?.learn(slice)
      return found.length > 0
    },
    /** Any other API call. Retried after a 429; a GET also after a broken connection. */
    call,
    /** Whether pods of this namespace are watched. */
    isWatched: (namespace: string) => watchOf('pods', namespace) !== undefined,
    /** How far the API server's clock is behind the agent's, in ms: add this to its times. */
    serverBehindMs: () => connection.serverBehindMs(),
    /** Asks the server to prove that the watch of pods is complete. */
    assurePods: () => watches.pods.forEach(watch => watch.assure()),
    /** When the last successful proof was requested; `-Infinity` before the first one. */
    podsAssuredAt: () => Math.min(...watches.pods.map(watch => watch.assuredAt() ?? -Infinity)),
    /** The revision of the API server that the watch of pods has reached; `undefined` if it is no number, or if there are several watches. */
    podsAsOf(): number | undefined {
      const [watch, ...others] = watches.pods
      // The least of several says how quiet a namespace is, and nothing about the pods of another one.
      const reached = others.length === 0 ? Number(watch?.revision() ?? NaN) : NaN
      return Number.isSafeInteger(reached) && reached > 0 ? reached : undefined
    },
    /** Call it when another source shows a change that this watch should have shown. The watch must soon show an event, or restarts. */
    verifyWatch: (name: PartName) => watches[name].forEach(watch => watch.verify()),
    /** Called when anything relevant has changed. The call comes from the watch, so the listener must return at once. */
    onChange: (listener: () => void): (() => void) => listeners.add(listener),
    /** Ends the watches and the connection. */
    async stop() {
      await Promise.all(Object.values(watches).flatMap(all => all.map(watch => watch.stop())))
      await connection.close()
    }
  }
}
