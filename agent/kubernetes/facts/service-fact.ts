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
import { annotationsOf } from './pod-fact.ts'
import { fieldsOf, listOf, portOf, textOf, timeOf } from '../../base/read.ts'

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
