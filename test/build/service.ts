import type { Endpoint, EndpointFact, PodFact, PodUid, ServiceFact } from '../../agent/rules/drain/facts.ts'

/** A Service of the namespace shop; a test states only the differences. */
export const serviceFact = (name: string, differs: Partial<ServiceFact> = {}): ServiceFact => ({
  uid: `svc-${name}`,
  namespace: 'shop',
  name,
  createdAt: 0,
  ports: [{ name: 'http', port: 80 }],
  clusterIps: [],
  external: [],
  nodePorts: [],
  externalName: undefined,
  annotations: {},
  ...differs
})

/** The annotations of a Service, from their names without the prefix. */
export const asking = (ask: Readonly<Record<string, string>>): ServiceFact['annotations'] =>
  Object.fromEntries(Object.entries(ask).map(([key, value]) => [`apisix-drain.io/${key}`, value]))

/** An endpoint that serves. */
export const endpoint = (podUid: string | undefined, differs: Partial<Endpoint> = {}): Endpoint => ({
  address: '10.0.0.1',
  podUid: podUid as PodUid | undefined,
  ready: true,
  serving: true,
  terminating: false,
  ...differs
})

/** A slice of the Service `web`. */
export const slice = (
  name: string,
  endpoints: readonly Endpoint[],
  differs: Partial<EndpointFact> = {}
): EndpointFact => ({
  uid: `uid-${name}`,
  namespace: 'shop',
  name,
  service: 'web',
  family: 'IPv4',
  ports: [{ name: 'http', port: 8080 }],
  endpoints,
  ...differs
})

/** The one slice of a Service, as the EndpointSlice controller would write it for these pods. */
export const sliceOf = (service: string, pods: readonly PodFact[]): EndpointFact =>
  slice(
    `${service}-1`,
    pods
      .filter(({ phase }) => phase === 'Running')
      .map(({ uid, ips: [address = ''], ready, deletionAt }) =>
        endpoint(uid, {
          address,
          ready: ready && deletionAt === undefined,
          serving: ready,
          terminating: deletionAt !== undefined
        })
      ),
    { service }
  )
