import type { Holder } from '../../rules/plan/holder.ts'
import type { AdminObject } from './admin-api.ts'
import { found } from './holders.ts'
import { isRecord } from './nodes.ts'

/** Plugins of APISIX that connect to an address of their own (docs/ways.md). The last two hold other plugins. */
const PLUGINS =
  /^(ai-.+|.+-logger|.+-logging|authz-.+|ldap-.+|limit-.+|forward-auth|opa|openid-connect|cas-auth|wolf-rbac|proxy-mirror|openwhisk|openfunction|aws-lambda|azure-functions|syslog|zipkin|workflow|multi-auth)$/
/** Their fields with such an address: a URL, `host:port`, or a host. */
const FIELDS =
  /^(uri|host|server|endpoint|endpoint_addrs?|endpoint_uri|function_uri|api_host|idp_uri|ldap_uri|discovery|(introspection|token|resource_registration)_endpoint|redis_host|redis_cluster_nodes|nameserver_list)$/
/** A map whose keys are hosts (`kafka-logger`). */
const HOSTS = 'broker_list'
/** How deep such a field is in a plugin's settings at most. */
const DEPTH = 8
const HOST = /^(?:[a-z+]+:\/\/)?(?:[^/@]*@)?([^/?#]+)/i

/** Where the plugins of one object, and Kafka upstreams, connect to past the balancer: no barrier is in that way. */
export function connectorsOf(object: AdminObject): readonly Holder[] {
  const { resource, id, value } = object
  const own = (by: string, nodes: unknown) =>
    found(object, `${resource}/${id}/${by}`, [], { nodes }).map(holder => ({ ...holder, connects: true }))
  const kafka = [value, value.upstream].filter(isRecord).filter(({ scheme }) => scheme === 'kafka')
  const plugins = Object.entries(isRecord(value.plugins) ? value.plugins : {})
  return [
    ...kafka.flatMap(({ nodes }) => own('kafka', nodes)),
    ...plugins.flatMap(([name, conf]) => {
      const addresses = PLUGINS.test(name) ? addressesIn(conf, DEPTH) : []
      const nodes = Object.fromEntries(addresses.map(address => [HOST.exec(address)?.[1] ?? '', 1]))
      return addresses.length > 0 ? own(`plugins/${name}`, nodes) : []
    })
  ]
}

function addressesIn(conf: unknown, depth: number): string[] {
  if (depth === 0 || typeof conf !== 'object' || conf === null) return []
  return Object.entries(conf).flatMap(([key, value]) => {
    if (key === HOSTS && isRecord(value)) return Object.keys(value)
    const texts = FIELDS.test(key) ? [value].flat().filter(text => typeof text === 'string') : []
    return texts.length > 0 ? texts : addressesIn(value, depth - 1)
  })
}
