import type { Millis, NodeKey } from '../drain/facts.ts'
import type { Holder, HolderKey } from '../plan/holder.ts'

/** What one read of one gateway's Control API showed. */
export interface Sighting {
  readonly beganAt: Millis
  /** Every holder the gateway knows, with the nodes it lists. */
  readonly holders: ReadonlyMap<HolderKey, readonly NodeKey[]>
}

export interface ControlOptions {
  readonly port: number
  readonly scheme: 'http' | 'https'
  readonly timeoutMs: number
  readonly now: () => Millis
  /** Largest body accepted, in bytes; default 64 MiB. */
  readonly maxBytes?: number
}

/** Reads /v1/upstreams, /v1/services and /v1/routes of the gateway at `host`, each on its own fresh connection. */
export type ReadGateway = (host: string, signal?: AbortSignal) => Promise<Sighting>

export declare function createControlReader(options: ControlOptions): ReadGateway

/** The Control API shows upstreams, services and routes only, and no nodes that discovery finds. */
export function observable(holder: Holder): boolean {
  return (
    holder.discovery === undefined &&
    (holder.resource === 'upstreams' || holder.resource === 'services' || holder.resource === 'routes')
  )
}
