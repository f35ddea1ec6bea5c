import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { AdminApi } from '../gateway/admin-api.ts'
import { createHolderIndex } from '../gateway/holder-index.ts'
import { RESOURCES } from '../gateway/inventory.ts'
import { listAll } from '../gateway/listing.ts'
import { everyHidden } from '../loop/hidden.ts'
import { tellLeadsTo } from '../plan/leads-to.ts'
import { toEndpointFact } from '../watch/endpoint-fact.ts'
import { toPodFact } from '../watch/pod-fact.ts'
import { createPodStore } from '../watch/pod-store.ts'
import { toServiceFact } from '../watch/service-fact.ts'
import { createServiceStore } from '../watch/service-store.ts'
import type { Sink } from '../watch/sink.ts'
import { createSliceStore } from '../watch/slice-store.ts'
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
