import type { NodeKey } from '../rules/drain/facts.ts'
import { observable, type Sighting } from '../gateway/apisix/control-api.ts'
import { nameOfOwner } from '../gateway/apisix/owner.ts'
import { addressOf } from '../gateway/apisix/nodes.ts'
import { difference, type DeviationKind } from '../rules/plan/difference.ts'
import type { Holder } from '../rules/plan/holder.ts'

/** One difference between Kubernetes, the Admin API and the gateways. */
export interface Row {
  readonly kind: DeviationKind
  readonly node: NodeKey
  readonly holder: string
  /** The gateway's name, or `admin-api`. */
  readonly where: string
  /** The other component that writes the holder. */
  readonly writer: string
}

/** One reading of Kubernetes, the Admin API and the gateways. */
interface Reading {
  readonly holders: Iterable<Holder>
  /** The read of each gateway's Control API, by the gateway's name. Gateways that could not be read are left out. */
  readonly sightings: ReadonlyMap<string, Sighting>
  /** The ready endpoints that a holder should list; none if it is not known to follow a Service. */
  readonly expected: (holder: Holder) => readonly NodeKey[]
  /** Whether this address is in a range of pods (`sync.podRanges`), and no pod and no slice has it. */
  readonly isFree: (host: string) => boolean
}

/** Every difference in one reading. No object of the Admin API lists discovered nodes, so only ghosts are reported among them. */
export function compare({ holders, sightings, expected, isFree }: Reading): readonly Row[] {
  const isGone = (node: NodeKey) => isFree(addressOf(node).host)
  return [...holders].flatMap(holder => {
    const admin = holder.nodes.map(({ key }) => key)
    const gateways = new Map(
      [...sightings].flatMap(([name, { holders: seen, hidden }]) =>
        observable(holder) && !hidden?.has(holder.key) ? [[name, seen.get(holder.key) ?? []] as const] : []
      )
    )
    const found = difference({ endpoints: expected(holder), isGone, admin, gateways })
    return found
      .filter(({ kind }) => holder.discovery === undefined || kind === 'ghost')
      .map(({ kind, node, gateway }) => ({
        kind,
        node,
        holder: holder.key,
        where: gateway ?? 'admin-api',
        writer: holder.discovery ? 'discovery' : nameOfOwner(holder.owner)
      }))
  })
}

/** The differences that both readings show. A difference in one reading may be a change in progress, because sources are read in turn. */
export function inBoth(first: readonly Row[], second: readonly Row[]): readonly Row[] {
  const known = new Set(first.map(nameOf))
  return second.filter(row => known.has(nameOf(row)))
}

const nameOf = ({ kind, node, holder, where }: Row): string => `${kind} ${node} ${holder} ${where}`
