import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'

import { nodeKey, type Millis, type NodeKey } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import { holdersOf } from './holders.ts'
import { listOf, readDump, type Discovered } from './discovery-dump.ts'
import { checked, reply, toObject } from './admin-api.ts'
import { createHttp } from './http.ts'

/** The result of one read of one gateway's Control API. */
export interface Sighting {
  readonly beganAt: Millis
  /** Every holder the gateway knows, with the nodes it lists. */
  readonly holders: ReadonlyMap<HolderKey, readonly NodeKey[]>
  /** Holders whose discovered nodes the gateway does not show, each with the reason. Their nodes are unknown. Absent: no such holder. */
  readonly hidden?: ReadonlyMap<HolderKey, string>
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
  /** The discovery dump; `undefined` if it cannot be read (an older APISIX, no discovery). Then holders that depend on it are hidden. */
  const discovered = async (host: string, signal?: AbortSignal): Promise<Discovered | undefined> => {
    const url = `http://${nodeKey(host, options.port)}/v1/discovery/kubernetes/dump`
    try {
      return readDump(await http.json({ method: 'GET', url, timeoutMs: options.timeoutMs, signal }))
    } catch {
      return undefined
    }
  }
  return async (host, signal) => {
    const beganAt = options.now()
    const holders = (await Promise.all(OBSERVED.map(resource => read(host, resource, signal)))).flat()
    const shown = new Map<HolderKey, readonly NodeKey[]>()
    const hidden = new Map<HolderKey, string>()
    const found = holders.some(isFound) ? await discovered(host, signal) : undefined
    for (const holder of holders) {
      // The text of each Service is read by itself.
      if (found && isFound(holder)) await setImmediate()
      const nodes = isFound(holder) ? found?.nodes(holder) : holder.nodes.map(({ key }) => key)
      if (nodes) shown.set(holder.key, nodes)
      else hidden.set(holder.key, `its discovery dump does not show ${holder.discovery?.service ?? ''}`)
    }
    return { beganAt, holders: shown, hidden }
  }
}

/** Whether the Control API shows the nodes of this holder. It shows only upstreams, services and routes, and only Kubernetes discovery. */
export function observable(holder: Holder): boolean {
  return (
    (holder.discovery === undefined || isFound(holder)) &&
    OBSERVED.some(resource => resource === holder.resource)
  )
}

/** Whether the gateway discovers the nodes itself, and shows them in its dump. */
const isFound = ({ discovery }: Holder): boolean => discovery?.type === 'kubernetes'
