import { z } from 'zod'
import { setImmediate } from 'node:timers/promises'
import { readJson, isRecord } from '../../base/read.ts'
import { type NodeKey, nodeKey, type Millis } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'
import { holdersOf, readNodes } from './holders.ts'
import { checked, listOf, reply, toObject } from './admin-api.ts'
import { createHttp } from './http.ts'

const listed = z.looseObject({ name: z.string(), value: z.string() })

/**
 * `GET /v1/discovery/kubernetes/dump` (apisix/discovery/kubernetes/init.lua, dump_data): for each cluster, the nodes of every
 * Service by port name, as JSON in a string. `id` is present if several clusters are configured.
 */
const dump = z.looseObject({
  endpoints: listOf(z.looseObject({ id: z.string().optional(), endpoints: listOf(listed) }))
})

/** The nodes that a gateway has discovered. */
interface Discovered {
  /** The nodes behind a holder's `service_name`; `undefined` if the dump does not have them. */
  nodes(holder: Holder): readonly NodeKey[] | undefined
}

/** @returns `undefined` if this is not a dump */
export function readDump(body: unknown): Discovered | undefined {
  const parsed = dump.safeParse(body)
  if (!parsed.success) return undefined
  const services = new Map(
    parsed.data.endpoints.flatMap(({ id, endpoints }) =>
      endpoints.map(({ name, value }) => [id === undefined ? name : `${id}/${name}`, value] as const)
    )
  )
  const read = new Map<string, unknown>()
  return {
    nodes(holder) {
      const name = holder.discovery?.service ?? ''
      const end = name.lastIndexOf(':')
      const service = name.slice(0, end)
      const value = services.get(service)
      // An older APISIX with one cluster dumps nothing. That does not mean that a Service has no nodes.
      if (value === undefined) return undefined
      if (!read.has(service)) read.set(service, tryJson(value))
      const ports = read.get(service)
      // The dump leaves out a port without ready addresses.
      return isRecord(ports)
        ? readNodes(ports[name.slice(end + 1)] ?? [])?.nodes.map(({ key }) => key)
        : undefined
    }
  }
}

function tryJson(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}

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
