import { z } from 'zod'

import type { NodeKey } from '../../rules/drain/facts.ts'
import type { Holder } from '../../rules/plan/holder.ts'
import { readNodes } from './nodes.ts'

const listed = z.looseObject({ name: z.string(), value: z.string() })
/** A list of items. Lua encodes an empty list as `{}`. */
const list = <T extends z.ZodType>(item: T) => z.union([z.array(item), z.looseObject({}).transform(() => [])])

/**
 * `GET /v1/discovery/kubernetes/dump` (apisix/discovery/kubernetes/init.lua, dump_data): for each cluster, the nodes of every
 * Service by port name, as JSON in a string. `id` is present if several clusters are configured.
 */
const dump = z.looseObject({
  endpoints: list(z.looseObject({ id: z.string().optional(), endpoints: list(listed) }))
})

/** The nodes that a gateway has discovered. */
export interface Discovered {
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
  return {
    nodes(holder) {
      const name = holder.discovery?.service ?? ''
      const end = name.lastIndexOf(':')
      const value = services.get(name.slice(0, end))
      // An older APISIX with one cluster dumps nothing. That does not mean that a Service has no nodes.
      return value === undefined ? undefined : nodesAt(value, name.slice(end + 1))
    }
  }
}

function nodesAt(value: string, port: string): readonly NodeKey[] | undefined {
  const ports = z.record(z.string(), z.unknown()).safeParse(tryJson(value))
  if (!ports.success) return undefined
  // The dump leaves out a port without ready addresses.
  return readNodes(ports.data[port] ?? [])?.nodes.map(({ key }) => key)
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
