import type { ConfigView } from './config-view.ts'
import type { Discovery } from './discovery.ts'
import { canonicalIp } from './ip.ts'
import { asText, isObject, type Json, type JsonObject } from './json.ts'
import { bareHost, readNodes } from './nodes.ts'
import { APPLIED } from './resources.ts'
import { idOf, type Item } from './store.ts'

interface PlaceNode {
  /** Canonical. */
  readonly ip: string
  readonly port: number | undefined
  /** `ip:port`, IPv6 in brackets. */
  readonly name: string
  /** Of weight 0: chosen only if no node of another weight is left. */
  readonly standby: boolean
}

/** A list of nodes of which a worker chooses one. */
export interface Place {
  /** `upstreams/1`, `routes/1/traffic-split` … */
  readonly name: string
  /** Undefined if discovery does not report them. */
  readonly nodes: readonly PlaceNode[] | undefined
}

/** The addresses of each node name. */
export type Names = ReadonlyMap<string, readonly string[]>

/** The places of one worker in its own configuration, found as the plugin finds them (places.lua). */
export interface Places {
  /** The places that list this address, without unreferenced upstreams. */
  of(ip: string): Place[]
  /** How many places this worker cannot read. */
  readonly hidden: number
  /** Resolves names and discovery. Returns the addresses of places that have changed. */
  lookUp(): Set<string>
  /** Stops following the configuration. */
  close(): void
}

const KINDS: ReadonlySet<string> = new Set(APPLIED)

const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, grpc: 80, grpcs: 443 }

interface Spot extends Place {
  nodes: readonly PlaceNode[] | undefined
  /** A name does not resolve; as in APISIX, the list then lacks that node. */
  unknown: boolean
  /** The result of discovery: the same array until it changes. */
  source: unknown
  readonly value: JsonObject
  /** The id of an upstream object, which is a place only while another object refers to it. Undefined: always a place. */
  readonly upstream: string | undefined
  readonly moves: boolean
}

interface Found {
  readonly spots: readonly Spot[]
  /** Upstreams that the item refers to. */
  readonly refs: readonly string[]
}

/** @param changed called with the addresses of a place that was added or removed, in the step that changed the configuration */
export function createPlaces(
  config: ConfigView,
  discovery: Discovery | undefined,
  names: Names | undefined,
  changed: (ips: Iterable<string>) => void
): Places {
  const records = new Map<string, Found>()
  const byIp = new Map<string, Set<Spot>>()
  const byId = new Map<string, Spot>()
  const refs = new Map<string, number>()
  const moving = new Set<Spot>()
  let hidden: number | undefined

  const mark = (spot: Spot, on: boolean): Set<string> => {
    const ips = new Set(spot.nodes?.map(({ ip }) => ip))
    for (const ip of ips) {
      const spots = byIp.get(ip) ?? new Set<Spot>()
      if (on) spots.add(spot)
      else spots.delete(spot)
      if (spots.size > 0) byIp.set(ip, spots)
      else byIp.delete(ip)
    }
    return ips
  }
  const nodesOf = (spot: Spot): readonly PlaceNode[] | undefined => {
    const { value, moves } = spot
    spot.unknown = moves && hostsOf(value).some(host => !names?.get(host)?.length)
    if (!moves || (value['discovery_type'] === undefined && value['service_name'] === undefined))
      return written(value, names)
    if (!discovery?.has(asText(value['discovery_type']))) return undefined
    const source = discovery.nodes(asText(value['discovery_type']), asText(value['service_name']))
    if (source === spot.source) return spot.nodes
    spot.source = source
    return written({ ...value, nodes: [...source] }, names)
  }
  const take = (key: string, found: Found | undefined): void => {
    hidden = undefined
    const touched = new Set<string>()
    const touch = (spot: Spot | undefined): void => {
      for (const { ip } of spot?.nodes ?? []) touched.add(ip)
    }
    const apply = ({ spots, refs: ids }: Found, on: boolean): void => {
      for (const id of ids) {
        const n = (refs.get(id) ?? 0) + (on ? 1 : -1)
        if (n > 0) refs.set(id, n)
        else refs.delete(id)
        touch(byId.get(id))
      }
      for (const spot of spots) {
        if (spot.moves && on) moving.add(spot)
        if (!on) moving.delete(spot)
        if (spot.upstream !== undefined && on) byId.set(spot.upstream, spot)
        if (spot.upstream !== undefined && !on) byId.delete(spot.upstream)
        if (on) spot.nodes = nodesOf(spot)
        mark(spot, on)
        touch(spot)
      }
    }
    const old = records.get(key)
    if (old) apply(old, false)
    records.delete(key)
    if (found) {
      apply(found, true)
      records.set(key, found)
    }
    changed(touched)
  }
  const used = ({ upstream }: Spot): boolean => upstream === undefined || refs.has(upstream)

  const stop = config.onChange((resource, id, item) => {
    if (KINDS.has(resource)) take(`${resource}/${id}`, item && found(resource, item))
    else changed([])
  })
  for (const kind of KINDS)
    for (const item of config.list(kind)) take(`${kind}/${idOf(item.key)}`, found(kind, item))
  return {
    of: ip => [...(byIp.get(ip) ?? [])].filter(used),
    get hidden() {
      hidden ??= [...moving].filter(spot => (spot.unknown || !spot.nodes) && used(spot)).length
      return hidden
    },
    lookUp: () => {
      const touched = new Set<string>()
      for (const spot of moving) {
        const nodes = nodesOf(spot)
        if (nodes === spot.nodes || textOf(nodes) === textOf(spot.nodes)) continue
        hidden = undefined
        for (const ip of mark(spot, false)) touched.add(ip)
        spot.nodes = nodes
        for (const ip of mark(spot, true)) touched.add(ip)
      }
      return touched
    },
    close: stop
  }
}

const textOf = (nodes: readonly PlaceNode[] | undefined): string | undefined =>
  nodes?.map(({ name, standby }) => `${name}${standby ? '=0' : ''}`).join()

function found(kind: string, { key, value }: Item): Found {
  const id = asText(value['id']) || idOf(key)
  const name = `${kind}/${id.replaceAll(/[^\w.-]/g, '_')}`
  if (kind === 'upstreams') return { spots: [spotOf(value, name, id)], refs: [] }
  const spots: Spot[] = []
  const refs: string[] = []
  const refer = (upstream: Json | undefined, ref: Json | undefined, within: string): void => {
    if (isObject(upstream)) spots.push(spotOf(upstream, within, undefined))
    else if (asText(ref) !== '') refs.push(asText(ref))
  }
  refer(value['upstream'], value['upstream_id'], name)
  for (const choice of choicesOf(value['plugins']))
    refer(choice['upstream'], choice['upstream_id'], `${name}/traffic-split`)
  return { spots, refs }
}

const choicesOf = (plugins: Json | undefined): JsonObject[] => {
  const split = isObject(plugins) ? plugins['traffic-split'] : undefined
  const rules = isObject(split) && Array.isArray(split['rules']) ? split['rules'] : []
  return rules
    .filter(isObject)
    .flatMap(({ weighted_upstreams: list }) => (Array.isArray(list) ? list : []))
    .filter(isObject)
}

const spotOf = (value: JsonObject, name: string, upstream: string | undefined): Spot => ({
  name,
  value,
  upstream,
  nodes: undefined,
  unknown: false,
  source: undefined,
  moves:
    value['service_name'] !== undefined || value['discovery_type'] !== undefined || hostsOf(value).length > 0
})

/** The nodes that are names. */
const hostsOf = (value: JsonObject): string[] =>
  readNodes(value['nodes'])
    .map(({ host }) => bareHost(host))
    .filter(host => canonicalIp(host) === undefined)

function written(value: JsonObject, names: Names | undefined): PlaceNode[] {
  const nodes: PlaceNode[] = []
  for (const node of readNodes(value['nodes'])) {
    const host = bareHost(node.host)
    const port = node.port ?? PORTS[asText(value['scheme']) || 'http']
    const own = canonicalIp(host)
    for (const ip of own === undefined ? (names?.get(host) ?? []) : [own]) {
      const bare = canonicalIp(ip) ?? ip
      const text = bare.includes(':') ? `[${bare}]` : bare
      nodes.push({
        ip: bare,
        port,
        name: port === undefined ? text : `${text}:${port}`,
        standby: node.weight === 0
      })
    }
  }
  return nodes
}
