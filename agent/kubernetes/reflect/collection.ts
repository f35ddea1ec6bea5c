/** The label with the Service's name on each of its slices. */
export const SERVICE_LABEL = 'kubernetes.io/service-name'

/** A set of objects of one kind that can be listed and watched. */
export interface Collection {
  /** Such as `/api/v1/namespaces/shop/pods`. */
  readonly path: string
  readonly labelSelector?: string | undefined
}

export type Params = Readonly<Record<string, string | number | boolean | undefined>>

/** The path and query of a request for a collection. Parameters that are `undefined` are left out. */
export function pathOf({ path, labelSelector }: Collection, params: Params = {}): string {
  const query = new URLSearchParams()
  const all: Params = { labelSelector, ...params }
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined && value !== '') query.set(name, String(value))
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

export const podsIn = (namespace: string | undefined, labelSelector?: string): Collection => ({
  path: `/api/v1${scopeOf(namespace)}/pods`,
  labelSelector
})

export const slicesIn = (namespace: string | undefined): Collection => ({
  path: `/apis/discovery.k8s.io/v1${scopeOf(namespace)}/endpointslices`
})

export const slicesOf = (namespace: string, service: string): Collection => ({
  ...slicesIn(namespace),
  labelSelector: `${SERVICE_LABEL}=${service}`
})

export const servicesIn = (namespace: string | undefined): Collection => ({
  path: `/api/v1${scopeOf(namespace)}/services`
})

const scopeOf = (namespace: string | undefined) =>
  namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`
