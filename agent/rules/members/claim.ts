import { annotationReader, quoted, UPSTREAM } from '../drain/annotations.ts'
import type { ServiceFact } from '../drain/facts.ts'
import type { HolderKey } from '../plan/holder.ts'

/** One Service's claim on the nodes of one upstream. */
export interface Claim {
  readonly service: ServiceFact
  /** Always `upstreams/<id>`. */
  readonly holder: HolderKey
  readonly id: string
  /** The name of the Service's port, which EndpointSlices use too. */
  readonly port: string
}

/** The claims of a Service. If any part is unreadable, nothing is done for the Service. */
interface Claims {
  readonly claims: readonly Claim[]
  readonly problems: readonly string[]
}

const NONE: Claims = { claims: [], problems: [] }
/** apisix/schema_def.lua: `id_schema`. */
const ID = /^[a-zA-Z0-9-_.]{1,64}$/

/** Reads the annotations of a Service. Never throws. */
export function claimsOf(service: ServiceFact): Claims {
  const { annotations } = service
  if (annotations[UPSTREAM] === undefined) return NONE
  const { read, problems: unreadable } = annotationReader(annotations)
  if (service.externalName !== undefined)
    return { claims: [], problems: [`${UPSTREAM}: a Service of type ExternalName has no endpoints to list`] }
  const problems: string[] = []
  const wanted = read(UPSTREAM, text => text.split(','), 'a list of upstreams') ?? []
  const claims = wanted.flatMap(entry => {
    const at = entry.lastIndexOf('=')
    const id = entry.slice(at + 1).trim()
    const found = portNamed(service, at < 0 ? undefined : entry.slice(0, at).trim())
    if (!ID.test(id)) problems.push(`${UPSTREAM}: ${quoted(entry.trim())} names no upstream`)
    if (typeof found !== 'string') {
      problems.push(`${UPSTREAM}: ${found.problem}`)
      return []
    }
    return [{ service, holder: `upstreams/${id}`, id, port: found }]
  })
  for (const id of twice(claims.map(claim => claim.id))) {
    problems.push(`${UPSTREAM}: ${id} is named for two ports: nodes of one upstream serve the same`)
  }
  const all = [...unreadable, ...problems]
  return all.length > 0 ? { claims: [], problems: all } : { claims, problems: all }
}

function portNamed({ ports }: ServiceFact, wanted: string | undefined): string | { problem: string } {
  if (wanted === undefined && ports.length !== 1)
    return { problem: `the Service has ${ports.length} ports: write <port>=<upstream>` }
  const named = ports.filter(
    ({ name, port }) => wanted === undefined || name === wanted || String(port) === wanted
  )
  // TCP and UDP may share a number.
  const found = named.find(({ protocol }) => protocol === undefined) ?? named[0]
  if (!found) return { problem: `the Service has no port ${quoted(String(wanted))}` }
  if (found.protocol === undefined) return found.name
  return { problem: `port ${found.port} is ${found.protocol}: only a port of TCP fills an upstream` }
}

function twice(ids: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(ids.filter(id => seen.has(id) || !seen.add(id)))
}

/** `namespace/name` of a Service. */
export const serviceName = ({ namespace, name }: Pick<ServiceFact, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`
