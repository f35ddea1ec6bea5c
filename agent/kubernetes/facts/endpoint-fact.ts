import type {
  DiscoveryV1EndpointPort,
  V1Endpoint,
  V1EndpointConditions,
  V1EndpointSlice,
  V1ObjectMeta,
  V1ObjectReference
} from '@kubernetes/client-node'
import type { Endpoint, EndpointFact, PodUid } from '../../rules/drain/facts.ts'
import { canonicalHost } from '../../base/address-ranges.ts'
import { SERVICE_LABEL } from '../reflect/collection.ts'
import { identityOf } from '../transport/objects.ts'
import { intern } from './intern.ts'
import { MOST_PORTS } from '../../rules/plan/match.ts'
import { fieldsOf, listOf, portOf, textOf } from '../../base/read.ts'

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
