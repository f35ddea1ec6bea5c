import type {
  V1LoadBalancerIngress,
  V1LoadBalancerStatus,
  V1ObjectMeta,
  V1Service,
  V1ServicePort,
  V1ServiceSpec,
  V1ServiceStatus
} from '@kubernetes/client-node'
import type { ServiceFact } from '../../rules/drain/facts.ts'
import { identityOf } from '../transport/objects.ts'
import { annotationsOf, createMultiMap } from './pod-fact.ts'
import { fieldsOf, listOf, portOf, textOf, timeOf, same } from '../../base/read.ts'
import { nameKey } from '../../rules/plan/holder.ts'
import type { Sink } from '../reflect/follow.ts'

const NONE: readonly never[] = Object.freeze([])

/** The needed fields of a Service. It never fails: `undefined` only without an identity. */
export function toServiceFact(object: unknown): ServiceFact | undefined {
  const { metadata, spec: specOf, status } = fieldsOf<V1Service>(object)
  const meta = fieldsOf<V1ObjectMeta>(metadata)
  const spec = fieldsOf<V1ServiceSpec>(specOf)
  const identity = identityOf(object)
  if (!identity) return undefined
  const ports = listOf(spec.ports).flatMap(entry => {
    const { name: portName, port: number, protocol } = fieldsOf<V1ServicePort>(entry)
    const port = portOf(number)
    const other = protocol === 'UDP' || protocol === 'SCTP' ? { protocol } : {}
    return port === undefined ? [] : [{ name: textOf(portName) ?? '', port, ...other }]
  })
  const clusterIps = texts(listOf(spec.clusterIPs).length > 0 ? listOf(spec.clusterIPs) : [spec.clusterIP])
  const ingress = listOf(
    fieldsOf<V1LoadBalancerStatus>(fieldsOf<V1ServiceStatus>(status).loadBalancer).ingress
  ).map(fieldsOf<V1LoadBalancerIngress>)
  return {
    ...identity,
    createdAt: timeOf(meta.creationTimestamp) ?? Infinity,
    ports,
    clusterIps: slim(clusterIps.filter(ip => ip !== 'None')),
    external: slim([
      ...texts(listOf(spec.externalIPs)),
      ...texts(ingress.flatMap(({ ip, hostname }) => [ip, hostname]))
    ]),
    nodePorts: slim(
      listOf(spec.ports).flatMap(entry => portOf(fieldsOf<V1ServicePort>(entry).nodePort) ?? [])
    ),
    externalName: spec.type === 'ExternalName' ? textOf(spec.externalName) : undefined,
    annotations: annotationsOf(meta.annotations)
  }
}

const texts = (values: readonly unknown[]): readonly string[] =>
  values.flatMap(value => (typeof value === 'string' && value !== '' ? [value] : []))

/** Saves memory: most lists are empty, and an array that grew by `push` has spare space. */
const slim = <T>(list: readonly T[]): readonly T[] => (list.length === 0 ? NONE : list.slice())

/** The Services: those with the agent's annotations, and the addresses and names that lead to their pods. */
export type ServiceStore = ReturnType<typeof createServiceStore>['store']

/** The store, and the interface that only its reflector may use. */
export function createServiceStore() {
  const services = new Map<string, ServiceFact>()
  const names = new Map<string, ServiceFact>()
  const aliases = createMultiMap<string, ServiceFact>()
  const byNodePort = createMultiMap<number, ServiceFact>()
  const targetsOf = ({ externalName }: ServiceFact) =>
    externalName === undefined ? [] : [nameKey(externalName)]
  let asking: readonly ServiceFact[] = []
  const changed = (...changed: readonly (ServiceFact | undefined)[]) => {
    if (changed.some(service => service && asks(service))) asking = [...services.values()].filter(asks)
    return true
  }
  const drop = (uid: string): ServiceFact | undefined => {
    const service = services.get(uid)
    if (!service) return undefined
    services.delete(uid)
    for (const key of targetsOf(service)) aliases.remove(key, service)
    for (const port of service.nodePorts ?? []) byNodePort.remove(port, service)
    if (names.get(nameOf(service))?.uid === uid) names.delete(nameOf(service))
    return service
  }
  const sink: Sink<ServiceFact> = {
    set(service) {
      const before = services.get(service.uid)
      if (same(before, service)) return false
      drop(service.uid)
      services.set(service.uid, service)
      names.set(nameOf(service), service)
      for (const key of targetsOf(service)) aliases.add(key, service)
      for (const port of service.nodePorts ?? []) byNodePort.add(port, service)
      return changed(before, service)
    },
    gone(uid) {
      const service = drop(uid)
      return service !== undefined && changed(service)
    }
  }
  return {
    sink,
    store: {
      /** Services with an annotation of the agent. The same list until one of them changes. */
      asking: () => asking,
      byName: (namespace: string, name: string) => names.get(nameOf({ namespace, name })),
      /** Services that only alias another name (type ExternalName), if that name has this key (`nameKey`). */
      aliasesTo: (key: string) => aliases.get(key),
      isNodePort: (port: number) => byNodePort.get(port).length > 0
    }
  }
}

const asks = ({ annotations }: ServiceFact): boolean => Object.keys(annotations).length > 0
const nameOf = ({ namespace, name }: Pick<ServiceFact, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`
