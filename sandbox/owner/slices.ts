/** The part of an EndpointSlice that an ingress controller 1.8 looks at. */
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

/** Where the owner finds them: the sandbox's API server store. */
export interface SliceSource {
  list(): readonly Slice[]
  /** Calls back for every change after now; returns what ends that. */
  onChange(listener: (slice: Slice) => void): () => void
}

export interface UpstreamNode {
  readonly host: string
  readonly port: number
  readonly weight: number
}

/** `pkg/providers/translation/translator.go:30`: every node has this weight. */
const WEIGHT = 100

export const serviceOf = (slice: Slice): string =>
  `${slice.metadata.namespace}/${slice.metadata.labels?.['kubernetes.io/service-name'] ?? ''}`

/**
 * The nodes of a Service: `if ep.Conditions.Ready != nil && !*ep.Conditions.Ready {continue}` (endpoint.go:183), and
 * nothing else. `serving` and `terminating` are never read by 1.8.
 */
export function readyNodes(slices: readonly Slice[], service: string): UpstreamNode[] {
  const nodes = slices
    .filter(slice => serviceOf(slice) === service)
    .flatMap(({ endpoints, ports }) =>
      endpoints
        .filter(endpoint => endpoint.conditions?.ready !== false)
        .flatMap(({ addresses }) =>
          addresses.flatMap(host =>
            ports.flatMap(({ port }) => (port === undefined ? [] : [{ host, port, weight: WEIGHT }]))
          )
        )
    )
  return nodes.toSorted((a, b) => a.host.localeCompare(b.host) || a.port - b.port)
}
