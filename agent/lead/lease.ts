import type { V1Lease, V1LeaseSpec, V1ObjectMeta } from '@kubernetes/client-node'
import type { Millis } from '../drain/facts.ts'
import { fieldsOf, numberOf, textOf } from '../base/read.ts'

/** A Lease as far as an election looks at it. */
export interface LeaseFact {
  /** Empty where it was given back. */
  readonly holder: string
  /** Changes with every write. It is the precondition of the agent's writes, and shows that the holder is alive. */
  readonly revision: string
  readonly durationMs: number
  readonly transitions: number
  readonly acquiredAt: string | undefined
}

/** Where the Lease is. */
export interface LeasePlace {
  readonly namespace: string
  readonly name: string
}

/** The longest time that another agent's Lease counts without a renewal, whatever its duration, in ms. */
const LONGEST_MS = 60_000

/** The JSON of a Lease; `undefined` where it is none. */
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
 * The Lease with us as its holder (`''`: given back), to be written over `before`. Its times are for people and other
 * programs; we never read them, because the clock they are from is not ours.
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
