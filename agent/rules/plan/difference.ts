import type { Millis, NodeKey } from '../drain/facts.ts'

/** One holder as three sources list it: EndpointSlices, the Admin API, and each gateway. */
export interface Sides {
  /**
   * Ready endpoints that the holder should list. `undefined` if the holder is not known to follow a Service: then no endpoint counts as
   * missing.
   */
  readonly endpoints: readonly NodeKey[] | undefined
  /** Whether the pod that this node led to is known to be gone. */
  readonly isGone: (node: NodeKey) => boolean
  readonly admin: readonly NodeKey[]
  /** The nodes that each gateway lists, by the gateway's name. A gateway that was not read, or cannot show this holder, is left out. */
  readonly gateways: ReadonlyMap<string, readonly NodeKey[]>
}

/**
 * - `ghost`: listed, and its pod is gone
 * - `missing`: not listed, but expected: a ready endpoint (Admin API), or a node of the Admin API (gateway)
 * - `stale`: a gateway still lists it, and the Admin API does not
 */
export type DeviationKind = 'ghost' | 'missing' | 'stale'

interface Deviation {
  readonly kind: DeviationKind
  readonly node: NodeKey
  /** The gateway's name; `null`: the Admin API. */
  readonly gateway: string | null
}

/** A deviation, and when it was first seen. Every check since then has found the deviation again. */
export interface AgedDeviation extends Deviation {
  readonly since: Millis
}

/** Compares each gateway with the Admin API, and the Admin API with the endpoints of Kubernetes. */
export function difference({ endpoints, isGone, admin, gateways }: Sides): readonly Deviation[] {
  const listed = new Set(admin)
  const found: Deviation[] = []
  for (const node of admin) if (isGone(node)) found.push({ kind: 'ghost', node, gateway: null })
  for (const node of endpoints ?? []) {
    if (!listed.has(node)) found.push({ kind: 'missing', node, gateway: null })
  }
  for (const [gateway, nodes] of gateways) {
    const there = new Set(nodes)
    for (const node of there) {
      if (isGone(node)) found.push({ kind: 'ghost', node, gateway })
      else if (!listed.has(node)) found.push({ kind: 'stale', node, gateway })
    }
    for (const node of listed) {
      if (!there.has(node) && !isGone(node)) found.push({ kind: 'missing', node, gateway })
    }
  }
  return found
}

/** The present deviations, each with the time at which it was first found. `before`: the last result for the same holder. */
export function aged(
  before: readonly AgedDeviation[],
  found: readonly Deviation[],
  now: Millis
): readonly AgedDeviation[] {
  const known = new Map(before.map(deviation => [nameOf(deviation), deviation]))
  return found.map(deviation => known.get(nameOf(deviation)) ?? { ...deviation, since: now })
}

const nameOf = ({ kind, node, gateway }: Deviation): string => `${kind} ${node} ${gateway ?? ''}`
