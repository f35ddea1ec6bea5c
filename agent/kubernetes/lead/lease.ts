import type { V1Lease, V1LeaseSpec, V1ObjectMeta } from '@kubernetes/client-node'
import type { Millis } from '../../rules/drain/facts.ts'
import { fieldsOf, numberOf, textOf } from '../../base/read.ts'

/** The fields of a Lease that an election reads. */
export interface LeaseFact {
  /** Empty if the holder gave it back. */
  readonly holder: string
  /** Changes with every write. It is the precondition of the agent's writes, and a change shows that the holder is alive. */
  readonly revision: string
  readonly durationMs: number
  readonly transitions: number
  readonly acquiredAt: string | undefined
}

/** The location of the Lease. */
export interface LeasePlace {
  readonly namespace: string
  readonly name: string
}

/** The longest time that another agent's Lease counts without a renewal, whatever its duration, in ms. */
const LONGEST_MS = 60_000

/** A Lease from its JSON; `undefined` if the JSON is no Lease. */
export function leaseFact(json: unknown): LeaseFact | undefined {
  const { metadata, spec: specOf } = fieldsOf<V1Lease>(json)
  const revision = textOf(fieldsOf<V1ObjectMeta>(metadata).resourceVersion)
  if (revision === undefined) return undefined
  const spec = fieldsOf<V1LeaseSpec>(specOf)
  return {
    holder: textOf(spec.holderIdentity) ?? '',
    revision,
    durationMs: Math.min(LONGEST_MS, (numberOf(spec.leaseDurationSeconds) ?? 0) * 1000),
    transitions: numberOf(spec.leaseTransitions) ?? 0,
    acquiredAt: textOf(spec.acquireTime)
  }
}

export const leasesPath = ({ namespace }: LeasePlace): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`

export const leasePath = (place: LeasePlace): string =>
  `${leasesPath(place)}/${encodeURIComponent(place.name)}`

/**
 * The Lease with this agent as its holder (`''`: given back), to write over `before`. Its times are for users and other programs. The
 * agent never reads them, because another clock made them.
 */
export function leaseBody(
  place: LeasePlace,
  holder: string,
  before: LeaseFact | undefined,
  durationMs: number,
  now: Millis
) {
  const time = new Date(now).toISOString().replace('Z', '000Z')
  const ours = before?.holder === holder
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...place, ...(before && { resourceVersion: before.revision }) },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: Math.max(1, Math.round(durationMs / 1000)),
      acquireTime: ours ? (before.acquiredAt ?? time) : time,
      renewTime: time,
      leaseTransitions: (before?.transitions ?? 0) + (before && !ours ? 1 : 0)
    }
  }
}
