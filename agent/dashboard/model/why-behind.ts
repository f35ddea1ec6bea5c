import type { HolderView } from '../../report/snapshot/holder-view.ts'
import { count, formatMs } from './format.ts'

/** A difference that is older than this is late, in ms. Owners and gateways need a few seconds in every rollout. */
export const LATE_MS = 30_000

/** `shop/web (upstreams/b41c9837)`: the Service that it follows, or its own name, and the id of the object. */
export const holderName = ({ service, name, key }: Pick<HolderView, 'service' | 'name' | 'key'>): string =>
  (service ?? name) ? `${service ?? name} (${key})` : key

/** Why a holder is behind Kubernetes: `its owner (ingress-controller-2) has not written 2 nodes`; empty if the holder is not behind. */
export function whyBehind({ behind, missing, notReady, owner }: HolderView): string {
  if (!behind) return ''
  const late = missing.length + notReady.length
  const nodes = late > 0 ? count(late, 'node') : 'what changed since'
  const [first, ...others] = behind.gateways
  const writer = owner === 'unknown' ? 'its owner' : `its owner (${owner})`
  const gateway =
    first &&
    `${first.gateway}: ${first.why}${others.length > 0 ? `, and ${count(others.length, 'other')}` : ''}`
  return [
    ...(behind.cause === 'owner' ? [`${writer} has not written ${nodes}`] : []),
    ...(behind.cause === 'sync' ? [`the agent's sync has not written ${nodes}`] : []),
    ...(gateway ? [gateway] : [])
  ].join('; ')
}

/** How long a holder has been behind, in ms; `null`: the holder is not behind. */
export const behindFor = ({ behind }: HolderView, now: number): number | null =>
  behind && Math.max(0, now - behind.since)

/** An age as text, in whole seconds. */
export const formatAge = (ms: number): string => formatMs(Math.round(ms / 1000) * 1000)
