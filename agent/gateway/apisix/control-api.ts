import { z } from 'zod'
import { type NodeKey, nodeKey, type Millis } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import { holdersOf } from './holders.ts'
import { checked, listOf, reply, toObject } from './admin-api.ts'
import { createHttp } from './http.ts'

/** The result of one read of one gateway's Control API. */
export interface Sighting {
  readonly beganAt: Millis
  /** Every holder the gateway knows, with the nodes it lists. Discovered nodes are in no list. */
  readonly holders: ReadonlyMap<HolderKey, readonly NodeKey[]>
}

export interface ControlOptions {
  readonly port: number
  readonly timeoutMs: number
  readonly now: () => Millis
  /** Largest body accepted, in bytes; default 8 MiB. */
  readonly maxBytes?: number
}

/**
 * Reads /v1/upstreams, /v1/services and /v1/routes of the gateway at `host`, each on a new connection. Any worker may
 * answer, from the configuration that it has applied, and a kept connection would always ask the same worker.
 *
 * @throws CodedError
 */
export type ReadGateway = (host: string, signal?: AbortSignal) => Promise<Sighting>

const OBSERVED = ['upstreams', 'services', 'routes'] as const

export function createControlReader(options: ControlOptions): ReadGateway {
  const maxBytes = options.maxBytes ?? 8 * 1024 * 1024
  const http = createHttp({ api: 'CONTROL', keepAlive: false, maxBytes })
  const read = async (host: string, resource: (typeof OBSERVED)[number], signal?: AbortSignal) => {
    const url = `http://${nodeKey(host, options.port)}/v1/${resource}`
    const garbled = 'CONTROL_GARBLED'
    const each = (item: unknown) => holdersOf(toObject(resource, checked(reply, item, `GET ${url}`, garbled)))
    const found = await http.json({ method: 'GET', url, timeoutMs: options.timeoutMs, signal, each })
    return checked(listOf(z.array(z.custom<Holder>())), found, `GET ${url}`, garbled).flat()
  }
  return async (host, signal) => {
    const beganAt = options.now()
    const holders = (await Promise.all(OBSERVED.map(resource => read(host, resource, signal)))).flat()
    return { beganAt, holders: new Map(holders.map(({ key, nodes }) => [key, nodes.map(node => node.key)])) }
  }
}

/** Whether the Control API shows the nodes of this holder. */
export const observable = ({ resource }: Holder): boolean => OBSERVED.some(one => one === resource)
