import type { EndpointSlice, Pod, Service, SliceEndpoint, SlicePort } from '../objects.ts'
import { isReady } from './owned.ts'

type Family = 'IPv4' | 'IPv6'

const familyOf = (ip: string): Family => (ip.includes(':') ? 'IPv6' : 'IPv4')

/** The endpoint of a pod in this family; undefined before it has an address and after it has ended (podToEndpoint). */
export function endpointOf(pod: Pod, family: Family, publishNotReady: boolean): SliceEndpoint | undefined {
  const ips = pod.status.podIPs?.map(({ ip }) => ip) ?? (pod.status.podIP ? [pod.status.podIP] : [])
  const address = ips.find(ip => familyOf(ip) === family)
  if (address === undefined || pod.status.phase === 'Succeeded' || pod.status.phase === 'Failed')
    return undefined
  const serving = isReady(pod)
  const terminating = pod.metadata.deletionTimestamp !== undefined
  const { namespace = 'default', name, uid } = pod.metadata
  return {
    addresses: [address],
    conditions: { ready: publishNotReady || (serving && !terminating), serving, terminating },
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(pod.spec.nodeName ? { nodeName: pod.spec.nodeName } : {})
  }
}

/** The Service's ports for this pod: a named targetPort may be another number in each pod. */
export function portsOf(service: Service, pod: Pod): SlicePort[] {
  return (service.spec.ports ?? []).flatMap(
    ({ name = '', port, targetPort = port, protocol = 'TCP', appProtocol }) => {
      const number =
        typeof targetPort === 'number'
          ? targetPort
          : [...pod.spec.containers, ...(pod.spec.initContainers ?? [])]
              .flatMap(({ ports = [] }) => ports)
              .find(one => one.name === targetPort && (one.protocol ?? 'TCP') === protocol)?.containerPort
      return number === undefined
        ? []
        : [{ name, port: number, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }]
    }
  )
}

interface SlicePlan {
  readonly create: readonly Pick<EndpointSlice, 'addressType' | 'endpoints' | 'ports'>[]
  readonly update: readonly EndpointSlice[]
  readonly remove: readonly EndpointSlice[]
}

interface Group {
  readonly family: Family
  readonly ports: readonly SlicePort[]
  readonly endpoints: SliceEndpoint[]
}

const groupKey = (family: string, ports: readonly SlicePort[]): string => `${family} ${JSON.stringify(ports)}`
const endpointKey = ({ addresses, targetRef }: SliceEndpoint): string =>
  `${addresses[0] ?? ''} ${targetRef?.uid ?? ''}`

function groupsOf(service: Service, pods: readonly Pod[]): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const family of service.spec.ipFamilies ?? ['IPv4'])
    for (const pod of pods) {
      const endpoint = endpointOf(pod, family, service.spec.publishNotReadyAddresses ?? false)
      if (!endpoint) continue
      const ports = portsOf(service, pod)
      const key = groupKey(family, ports)
      const group = groups.get(key) ?? { family, ports, endpoints: [] }
      group.endpoints.push(endpoint)
      groups.set(key, group)
    }
  return groups
}

/** Spreads the endpoints of one group over its slices, so that as few slices as possible change. */
function spread(group: Group, slices: readonly EndpointSlice[], most: number) {
  const wanted = new Map(group.endpoints.map(endpoint => [endpointKey(endpoint), endpoint]))
  const kept = slices.map(slice => {
    const endpoints = slice.endpoints.flatMap(endpoint => {
      const now = wanted.get(endpointKey(endpoint))
      wanted.delete(endpointKey(endpoint))
      return now ?? []
    })
    return { slice, endpoints, changed: JSON.stringify(endpoints) !== JSON.stringify(slice.endpoints) }
  })
  const homeless = [...wanted.values()]
  // Slices that must be written anyway are filled first.
  for (const one of kept.toSorted((a, b) => Number(b.changed) - Number(a.changed))) {
    const moved = homeless.splice(0, Math.max(most - one.endpoints.length, 0))
    if (moved.length === 0) continue
    one.endpoints.push(...moved)
    one.changed = true
  }
  const fresh: SliceEndpoint[][] = []
  while (homeless.length > 0) fresh.push(homeless.splice(0, most))
  return { kept, fresh }
}

/** The writes that make `existing` list the addresses of `pods`. `most`: endpoints per slice (100 in Kubernetes). */
export function planSlices(
  service: Service,
  pods: readonly Pod[],
  existing: readonly EndpointSlice[],
  most = 100
): SlicePlan {
  const groups = groupsOf(service, pods)
  const create: SlicePlan['create'][number][] = []
  const update: EndpointSlice[] = []
  const remove = new Set(existing.filter(slice => !groups.has(groupKey(slice.addressType, slice.ports))))
  for (const [key, group] of groups) {
    const own = existing.filter(slice => groupKey(slice.addressType, slice.ports) === key)
    const { kept, fresh } = spread(group, own, most)
    for (const { slice, endpoints, changed } of kept)
      if (endpoints.length === 0) remove.add(slice)
      else if (changed) update.push({ ...slice, endpoints })
    for (const endpoints of fresh) create.push({ addressType: group.family, ports: group.ports, endpoints })
  }
  // A Service without pods keeps one empty slice per family.
  const families = (service.spec.ipFamilies ?? ['IPv4']).filter(
    family => ![...groups.values()].some(group => group.family === family)
  )
  for (const addressType of families) {
    const placeholder = existing.find(slice => slice.addressType === addressType)
    if (!placeholder) create.push({ addressType, ports: [], endpoints: [] })
    else {
      remove.delete(placeholder)
      if (placeholder.endpoints.length > 0 || placeholder.ports.length > 0)
        update.push({ ...placeholder, endpoints: [], ports: [] })
    }
  }
  return { create, update, remove: [...remove] }
}
