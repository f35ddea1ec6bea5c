import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'
import type { AdminApi } from '../apisix/admin-api.ts'
import { createHolderIndex } from '../inventory/holder-index.ts'
import { RESOURCES } from '../inventory/inventory.ts'
import { listAll } from '../inventory/listing.ts'
import { everyHidden } from '../proof/hidden-places.ts'
import { tellLeadsTo } from '../plan/leads-to.ts'
import { toEndpointFact } from '../facts/endpoint-fact.ts'
import { toPodFact } from '../facts/pod-fact.ts'
import { createPodStore } from '../facts/pod-store.ts'
import { toServiceFact } from '../facts/service-fact.ts'
import { createServiceStore } from '../facts/service-store.ts'
import type { Sink } from '../reflect/watch-event.ts'
import { createSliceStore } from '../facts/slice-store.ts'
import { ok, warn, wordsOf, type Check } from './finding.ts'

const NAME = 'hidden'

type Pages = (signal: AbortSignal) => AsyncIterable<readonly unknown[]>

/** No place in APISIX leads to pods without listing them: the hooks of such pods get a 503. */
export function checkHidden(
  admin: Pick<AdminApi, 'list' | 'pageSize' | 'standalone'>,
  { mode, owner }: Pick<Config['apisix'], 'mode' | 'owner'>,
  clock: Clock,
  lists: Readonly<Record<'pods' | 'slices' | 'services', Pages>>
): Check {
  return async signal => {
    try {
      if (mode === 'standalone' || (mode === undefined && (await admin.standalone(signal))))
        return [ok(NAME, 'not looked for in standalone mode: `apisix-drain diff` reads the documents')]
      const inventory = createHolderIndex(owner)
      for (const resource of RESOURCES) inventory.replace(resource, await listAll(admin, resource, signal), 0)
      const [pods, slices, services] = [createPodStore(clock), createSliceStore(), createServiceStore()]
      await fill(lists.pods(signal), toPodFact, pods.sink)
      await fill(lists.slices(signal), toEndpointFact, slices.sink)
      await fill(lists.services(signal), toServiceFact, services.sink)
      const cluster = { pods: pods.store, slices: slices.store, services: services.store, parts: () => [] }
      const places = everyHidden({ cluster, inventory })
      if (places.length === 0) return [ok(NAME, 'no place leads to pods without listing them')]
      return places.map(place => warn(NAME, tellLeadsTo(place), place.change))
    } catch (err) {
      return [
        warn(NAME, `the places that hide pods cannot be told: ${wordsOf(err)}`, 'see admin-api and rbac')
      ]
    }
  }
}

async function fill<F>(
  pages: AsyncIterable<readonly unknown[]>,
  read: (object: unknown) => F | undefined,
  sink: Sink<F>
): Promise<void> {
  for await (const page of pages) {
    for (const object of page) {
      const fact = read(object)
      if (fact !== undefined) sink.set(fact)
    }
  }
}
