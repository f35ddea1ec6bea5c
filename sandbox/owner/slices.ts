import type { Store } from '../kubernetes/store.ts'

/** The part of an EndpointSlice that ingress controllers read. */
export interface Slice {
  readonly metadata: {
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly endpoints: readonly {
    readonly addresses: readonly string[]
    readonly conditions?: { readonly ready?: boolean }
  }[]
  readonly ports: readonly { readonly name?: string; readonly port?: number }[]
}

/** The owner's source of slices: the sandbox's API server store. */
export interface SliceSource {
  list(): readonly Slice[]
  /** Calls `listener` for every later change. Returns the function that removes the listener. */
  onChange(listener: (slice: Slice) => void): () => void
}

export interface UpstreamNode {
  readonly host: string
  readonly port: number
  readonly weight: number
}

export const serviceOf = (slice: Slice): string =>
  `${slice.metadata.namespace}/${slice.metadata.labels?.['kubernetes.io/service-name'] ?? ''}`

/**
 * The nodes of a Service. The only rule is `if ep.Conditions.Ready != nil && !*ep.Conditions.Ready {continue}` (1.8:
 * endpoint.go:183, 2.x: httproute.go:391). Neither version reads `serving` or `terminating`.
 */
export function readyNodes(slices: readonly Slice[], service: string, weight: number): UpstreamNode[] {
  return slices
    .filter(slice => serviceOf(slice) === service)
    .flatMap(({ endpoints, ports }) =>
      endpoints
        .filter(endpoint => endpoint.conditions?.ready !== false)
        .flatMap(({ addresses }) =>
          addresses.flatMap(host =>
            ports.flatMap(({ port }) => (port === undefined ? [] : [{ host, port, weight }]))
          )
        )
    )
}

/** The API server stand-in's EndpointSlices, as the owner watches them. */
export const storeSlices = (store: Store): SliceSource => ({
  list: () => store.list('endpointslices'),
  onChange: listener => store.onChange('endpointslices', ({ object }) => listener(object))
})
