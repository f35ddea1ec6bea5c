import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { callAdmin, type AdminAccess, type AdminCall } from './put.ts'

/** The objects of a sync. Every sync has all objects. */
export interface AdcObjects {
  readonly upstreams: readonly AdcObject[]
  readonly services: readonly AdcObject[]
  readonly routes: readonly AdcObject[]
}

interface AdcObject {
  readonly id: string
  readonly [field: string]: unknown
}

/** Sends a sync. Rejects if a part of the sync was refused. */
export type AdcTarget = (objects: AdcObjects) => Promise<void>

/** The label of every upstream of a service except the first one (typing.ts:16). */
export const SERVICE_LABEL = '__ADC_UPSTREAM_SERVICE_ID'

/** The resources that a dump reads (fetcher.ts:183). */
const DUMPED = ['routes', 'services', 'upstreams', 'ssls', 'consumers', 'global_rules', 'plugin_metadata']
/** An object comes before the objects that refer to it. */
const IN_ORDER = ['upstreams', 'services', 'routes'] as const
const AT_ONCE = 4
/** The pause before a write is sent again. */
const RETRY_MS = 100

/**
 * Provider type `apisix`. A sync reads all objects and puts those that differ from its own, as ADC 0.27.1 did in a run next
 * to a real APISIX. So a foreign change is reverted at the next sync, and an idle sync writes nothing. It deletes services
 * that it does not know, with their routes, and upstreams with the label of a service. Other upstreams stay (fetcher.ts:241).
 */
export function etcdTarget(admin: AdminAccess): AdcTarget {
  const write = (call: AdminCall) => retried(() => callAdmin(admin, call))
  return async objects => {
    const lists = await Promise.all(DUMPED.map(path => callAdmin(admin, { method: 'GET', path })))
    for (const resource of IN_ORDER) {
      const stored = new Map(valuesOf(lists[DUMPED.indexOf(resource)]).map(value => [value.id, value]))
      const waiting = objects[resource].filter(one => differs(one, stored.get(one.id)))
      const lane = async () => {
        for (let one = waiting.shift(); one; one = waiting.shift())
          await write({ method: 'PUT', path: `${resource}/${one.id}`, body: one })
      }
      await Promise.all(Array.from({ length: AT_ONCE }, lane))
    }
    const known = new Set(objects.services.map(({ id }) => id))
    const strangers = valuesOf(lists[1]).filter(({ id }) => !known.has(id))
    for (const { id } of strangers) {
      const routes = valuesOf(lists[0]).filter(({ service_id: service }) => service === id)
      for (const route of routes) await write({ method: 'DELETE', path: `routes/${route.id}` })
      await write({ method: 'DELETE', path: `services/${id}` })
    }
    const wanted = new Set(objects.upstreams.map(({ id }) => id))
    const left = valuesOf(lists[DUMPED.indexOf('upstreams')]).filter(
      ({ id, labels }) => !wanted.has(id) && SERVICE_LABEL in ((labels as object | undefined) ?? {})
    )
    for (const { id } of left) await write({ method: 'DELETE', path: `upstreams/${id}` })
  }
}

/** Whether the stored object differs from the wanted one, apart from the times that APISIX adds. */
const differs = (wanted: AdcObject, stored: AdcObject | undefined): boolean => {
  const { create_time: _created, update_time: _updated, ...fields } = { ...stored } as Record<string, unknown>
  return !isDeepStrictEqual(fields, { ...wanted })
}

/** ADC repeats a write that fails, up to three times (operator.ts:81). */
async function retried(call: () => Promise<unknown>): Promise<void> {
  for (let left = 3; ; left -= 1) {
    try {
      await call()
      return
    } catch (error) {
      if (left === 0) throw error
      await wait(RETRY_MS)
    }
  }
}

function valuesOf(list: unknown): AdcObject[] {
  const { list: items } = list as { readonly list: readonly { readonly value: AdcObject }[] | object }
  return Array.isArray(items) ? items.map(({ value }: { readonly value: AdcObject }) => value) : []
}

/**
 * Provider type `apisix-standalone`: each sync puts one whole document to every gateway, even if nothing changed
 * (operator.ts:120). It compares only with its last put (cache.ts), and never reads a gateway. An object that differs
 * gets the present time as its `modifiedIndex`, and so does the version of its type.
 */
export function standaloneTarget(gateways: () => readonly AdminAccess[]): AdcTarget {
  let before: Readonly<Record<string, Versioned>> = {}
  let last = 0
  return async objects => {
    const next: Record<string, Versioned> = {}
    // APISIX ignores a version that it already has. Two syncs can come within a millisecond here, so the version must grow.
    last = Math.max(Date.now(), last + 1)
    for (const type of IN_ORDER) next[type] = versioned(objects[type], before[type], last)
    before = next
    const body = Object.fromEntries(
      Object.entries(next).flatMap(([type, { version, items }]) => [
        [type, [...items.values()].map(({ item }) => item)],
        [`${type}_conf_version`, version]
      ])
    )
    const digest = createHash('sha1').update(JSON.stringify(body)).digest('hex')
    const answers = await Promise.allSettled(
      gateways().map(admin =>
        callAdmin(admin, { method: 'PUT', path: 'configs', body, headers: { 'x-digest': digest } })
      )
    )
    const refused = answers.find(({ status }) => status === 'rejected')
    if (!refused) return
    // As since 2.2.0: a refusal means that another client has written, so the next sync forgets the last put (client.go:339).
    before = {}
    throw new Error('a gateway refused the document')
  }
}

interface Versioned {
  readonly version: number
  readonly items: ReadonlyMap<string, { readonly text: string; readonly item: AdcObject }>
}

function versioned(objects: readonly AdcObject[], before: Versioned | undefined, at: number): Versioned {
  const items = new Map(
    objects.map(object => {
      const text = JSON.stringify(object)
      const known = before?.items.get(object.id)
      return [object.id, known?.text === text ? known : { text, item: { ...object, modifiedIndex: at } }]
    })
  )
  const same =
    before?.items.size === items.size && [...items].every(([id, one]) => before.items.get(id) === one)
  return { version: same ? before.version : at, items }
}
