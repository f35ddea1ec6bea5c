import { badRequest } from './errors.ts'
import type { KubeObject } from './objects.ts'
import type { ResourceName } from './resources.ts'

export type Match = (object: KubeObject) => boolean

const LABEL = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?`
const SET = new RegExp(String.raw`^\s*(${LABEL})\s+(in|notin)\s+\(([^()]*)\)\s*$`)
const EQUALITY = new RegExp(String.raw`^\s*(${LABEL})\s*(==|=|!=)\s*([A-Za-z0-9._-]*)\s*$`)
const EXISTS = new RegExp(String.raw`^\s*(!?)\s*(${LABEL})\s*$`)

type Labels = Readonly<Record<string, string>>

function requirement(text: string): (labels: Labels) => boolean {
  const set = SET.exec(text)
  if (set) {
    const [, key, operator, list] = set as unknown as [string, string, string, string]
    const values = new Set(list.split(',').map(value => value.trim()))
    return labels => (key in labels && values.has(labels[key]!)) === (operator === 'in')
  }
  const equality = EQUALITY.exec(text)
  if (equality) {
    const [, key, operator, value] = equality as unknown as [string, string, string, string]
    return labels => (labels[key] === value) === (operator !== '!=')
  }
  const exists = EXISTS.exec(text)
  if (exists) {
    const [, not, key] = exists as unknown as [string, string, string]
    return labels => key in labels === (not === '')
  }
  throw badRequest(`unable to parse requirement: ${JSON.stringify(text.trim())}`)
}

/** Label selector of the API: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Throws a 400. */
export function labelSelector(text: string): (labels: Labels | undefined) => boolean {
  if (text.trim() === '') return () => true
  const requirements = text.split(/,(?![^(]*\))/).map(requirement)
  return (labels = {}) => requirements.every(holds => holds(labels))
}

const ALWAYS = ['metadata.name', 'metadata.namespace']
const FIELDS: Partial<Record<ResourceName, readonly string[]>> = {
  pods: ['spec.nodeName', 'status.phase', 'status.podIP', 'spec.restartPolicy', 'spec.serviceAccountName'],
  events: ['type', 'reason', 'reportingController'].concat(
    ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
      field => `regarding.${field}`
    )
  ),
  namespaces: ['status.phase'],
  replicasets: ['status.replicas'],
  secrets: ['type'],
  services: ['spec.clusterIP', 'spec.type'],
  nodes: ['spec.unschedulable']
}

function fieldOf(object: KubeObject, path: string): string {
  let value: unknown = object
  for (const step of path.split('.'))
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[step] : undefined
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? `${value}`
    : ''
}

/** Field selector: `metadata.name=x,status.phase!=Failed`. Throws a 400 for a field that the resource does not index. */
export function fieldSelector(resource: ResourceName, text: string): Match {
  if (text.trim() === '') return () => true
  const known = new Set([...ALWAYS, ...(FIELDS[resource] ?? [])])
  const terms = text.split(',').map(term => {
    const parts = /^\s*([^=!\s]+)\s*(==|=|!=)\s*(.*?)\s*$/.exec(term)
    if (!parts) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`)
    const [, field, operator, value] = parts as unknown as [string, string, string, string]
    if (!known.has(field)) throw badRequest(`field label not supported: ${field}`)
    return { field, wanted: value, equal: operator !== '!=' }
  })
  return object => terms.every(({ field, wanted, equal }) => (fieldOf(object, field) === wanted) === equal)
}

/** One predicate for a namespace, a label selector and a field selector. */
export function matcher(
  resource: ResourceName,
  where: { namespace?: string | undefined; labels?: string | undefined; fields?: string | undefined }
): Match {
  const labels = labelSelector(where.labels ?? '')
  const fields = fieldSelector(resource, where.fields ?? '')
  return object =>
    (where.namespace === undefined || object.metadata.namespace === where.namespace) &&
    labels(object.metadata.labels) &&
    fields(object)
}

/** `matchLabels` and Service selectors: every label must match. An empty selector matches nothing, as in a Service. */
export const hasLabels = (labels: Labels | undefined, wanted: Labels | undefined): boolean => {
  const entries = Object.entries(wanted ?? {})
  return entries.length > 0 && entries.every(([key, value]) => labels?.[key] === value)
}
