import type { ServiceFact } from '../../agent/rules/drain/facts.ts'

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
