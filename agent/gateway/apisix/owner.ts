import { crc32 } from 'node:zlib'

import type { Holder, Owner } from '../../rules/plan/holder.ts'
import type { AdminObject } from './admin-api.ts'
import { isRecord } from './nodes.ts'

/** The other writer of a holder, and the evidence for it, for the log and the operator. */
interface Ownership {
  readonly owner: Owner
  readonly evidence: string
}

/**
 * The other writer of a holder. Controller 2.x puts the labels `manager-by` (its spelling) and `k8s/…` on services and routes; its
 * part ADC puts a label of its own on other upstreams. The upstream of a service has only a label that controller 1.8 writes too. But
 * it has the id of its service, so the service decides (`ofSecond`: the ids of services that controller 2.x wrote).
 */
export function ownershipOf(
  { labels, name, id, resource }: Pick<Holder, 'labels' | 'name' | 'id' | 'resource'>,
  ofSecond: ReadonlySet<string>
): Ownership {
  const second = Object.keys(labels).find(isSecondLabel)
  if (second !== undefined) return { owner: 'ingress-controller-2', evidence: `its label ${second}` }
  if (resource === 'upstreams' && ofSecond.has(id))
    return { owner: 'ingress-controller-2', evidence: `the service of the same id ${id} is the controller's` }
  if (labels['managed-by'] === 'apisix-ingress-controller')
    return { owner: 'ingress-controller-1', evidence: 'its label managed-by' }
  // Labels can be removed; the id of controller 1.8 is derived from the name (pkg/id/idgen.go:26).
  if (resource === 'upstreams' && name !== undefined && id === crc32(name).toString(16))
    return { owner: 'ingress-controller-1', evidence: `its id ${id}, which is made from its name` }
  return { owner: 'unknown', evidence: 'it has no label of an ingress controller' }
}

/**
 * The namespace that an ingress controller made this object from; `undefined`: not known. Both controllers name objects
 * `namespace_…` (2.x: `Service_namespace_…` for a further backend) and derive the id from the name, so a tenant can choose neither.
 * Labels count only without such an id, because a tenant may set the labels of an ApisixRoute, and the content of an inline upstream.
 */
export function namespaceOf({ id, value }: Pick<AdminObject, 'id' | 'value'>): string | undefined {
  const { name, labels } = value
  if (typeof name === 'string' && id === crc32(name).toString(16)) {
    const [first, second] = name.split('_')
    return second === undefined ? undefined : first === 'Service' ? second : first
  }
  if (!isRecord(labels) || labels['manager-by'] !== 'apisix-ingress-controller') return undefined
  return typeof labels['k8s/namespace'] === 'string' ? labels['k8s/namespace'] : undefined
}

const NAMES: Readonly<Record<Owner, string>> = {
  'ingress-controller-1': 'ingress controller 1.x',
  'ingress-controller-2': 'ingress controller 2.x',
  unknown: 'an unknown writer'
}

/** The owner, in words for a person. */
export const nameOfOwner = (owner: Owner): string => NAMES[owner]

/** The writer of this holder, in words, with the evidence: `ingress controller 1.x (its label managed-by)`. */
export function writerOf(holder: Holder): string {
  const own = new Set(holder.owner === 'ingress-controller-2' ? [holder.id] : [])
  return `${NAMES[holder.owner]} (${ownershipOf(holder, own).evidence})`
}

/** The ids of the services that controller 2.x wrote. */
export function servicesOfSecond(services: readonly AdminObject[]): ReadonlySet<string> {
  const ids = services.flatMap(({ id, value }) =>
    isRecord(value.labels) && Object.keys(value.labels).some(isSecondLabel) ? [id] : []
  )
  return new Set(ids)
}

const isSecondLabel = (label: string): boolean =>
  label === 'manager-by' || label === '__ADC_UPSTREAM_SERVICE_ID' || label.startsWith('k8s/')
