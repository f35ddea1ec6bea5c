import type { EndpointSlice } from '../../sandbox/kubernetes/objects.ts'
import { serviceOf } from '../../sandbox/owner/slices.ts'
import type { ApiServer } from './api-server.ts'
import { outside } from './translate.ts'

interface Named {
  readonly metadata: { readonly name: string }
}

/** The EndpointSlices of the sandbox's Kubernetes. */
export interface Slices {
  list(): readonly EndpointSlice[]
  onChange(listener: (slice: EndpointSlice) => void): () => void
}

/** Returns the v1 Endpoints of a Service as kube-controller-manager makes them: without terminating pods. */
function endpointsOf(slices: readonly EndpointSlice[], name: string): object {
  const ports = slices[0]?.ports ?? []
  const all = slices.flatMap(({ endpoints }) => endpoints)
  const address = ({ addresses: [ip], targetRef, nodeName }: (typeof all)[number]) => ({
    ip,
    ...(targetRef && { targetRef }),
    ...(nodeName && { nodeName })
  })
  const addresses = all.filter(({ conditions }) => conditions.ready).map(address)
  const notReadyAddresses = all
    .filter(({ conditions: { ready, terminating } }) => !ready && !terminating)
    .map(address)
  const isEmpty = addresses.length === 0 && notReadyAddresses.length === 0
  return {
    metadata: { name },
    subsets: isEmpty
      ? []
      : [
          {
            ...(addresses.length > 0 && { addresses }),
            ...(notReadyAddresses.length > 0 && { notReadyAddresses }),
            ports
          }
        ]
  }
}

/** Creates the object, or replaces it if it exists. */
async function put(api: ApiServer, collection: string, object: Named) {
  const path = `${collection}/${object.metadata.name}`
  const replaced = await api.call('PUT', path, object)
  const { status, json } = replaced.status === 404 ? await api.call('POST', collection, object) : replaced
  if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(json)}`)
}

/**
 * Copies the sandbox's EndpointSlices, and the Endpoints that follow from them, in order to a real API server. Returns the
 * function that ends the copies. That function rejects with the first write that failed.
 */
export function mirrorSlices(slices: Slices, api: ApiServer): () => Promise<void> {
  let last: Promise<unknown> = Promise.resolve()
  const copy = async (slice: EndpointSlice) => {
    const { namespace } = slice.metadata
    const service = serviceOf(slice)
    const translated = JSON.parse(outside(JSON.stringify(slice))) as EndpointSlice
    await put(api, `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
      ...translated,
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: slice.metadata.name, labels: slice.metadata.labels }
    } as Named)
    const mine = slices.list().filter(one => serviceOf(one) === service)
    const name = service.slice(service.indexOf('/') + 1)
    const endpoints = JSON.parse(outside(JSON.stringify(endpointsOf(mine, name)))) as Named
    await put(api, `/api/v1/namespaces/${namespace}/endpoints`, endpoints)
  }
  const queue = (slice: EndpointSlice) => {
    last = last.then(() => copy(slice))
    last.catch(() => {}) // the returned function reports it
  }
  const end = slices.onChange(queue)
  for (const slice of slices.list()) queue(slice)
  return async () => {
    end()
    await last
  }
}
