import { z } from 'zod'

import { readJson } from '../../base/read.ts'
import type { NodeKey } from '../../rules/drain/facts.ts'
import type { Holder } from '../../rules/plan/holder.ts'
import { arrayOf } from './barrier-wire.ts'
import { isRecord, readNodes } from './nodes.ts'

const listed = z.looseObject({ name: z.string(), value: z.string() })
/** A list of items. Lua encodes an empty list as `{}`. */
export const listOf = <T>(item: z.ZodType<T>) =>
  z.union([arrayOf(item), z.looseObject({}).transform(() => [])])

/**
 * `GET /v1/discovery/kubernetes/dump` (apisix/discovery/kubernetes/init.lua, dump_data): for each cluster, the nodes of every
 * Service by port name, as JSON in a string. `id` is present if several clusters are configured.
 */
const dump = z.looseObject({
  endpoints: listOf(z.looseObject({ id: z.string().optional(), endpoints: listOf(listed) }))
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
