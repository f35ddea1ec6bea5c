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

/** One reading of all three. */
interface Reading {
  readonly holders: Iterable<Holder>
  /** By the gateway's name; only gateways that could be read. */
  readonly sightings: ReadonlyMap<string, Sighting>
  /** Ready endpoints that a holder should list, as far as it is known to follow a Service. */
  readonly expected: (holder: Holder) => readonly NodeKey[]
  /** Whether no pod and no slice has this address, and only pods have such addresses. */
  readonly isFree: (host: string) => boolean
}

/** Every difference in one reading. No object lists discovered nodes, so for them only ghosts are reported. */
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

/** The differences that both readings show. The three sources are read in turn, so a single one may be a change in progress. */
export function inBoth(first: readonly Row[], second: readonly Row[]): readonly Row[] {
  const known = new Set(first.map(nameOf))
  return second.filter(row => known.has(nameOf(row)))
}

const nameOf = ({ kind, node, holder, where }: Row): string => `${kind} ${node} ${holder} ${where}`
