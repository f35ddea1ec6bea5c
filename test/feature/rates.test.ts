import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { serveAdminApi } from '../../sandbox/apisix/admin-api.ts'
import type { Api } from '../../sandbox/apisix/api-server.ts'
import type { JsonObject } from '../../sandbox/apisix/json.ts'
import { createStore } from '../../sandbox/apisix/store.ts'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig, RigOptions } from '../build/rig.ts'
import { sideBySide, type Start } from '../build/side-by-side.ts'

// The only pod of an upstream ends. Its successor serves at once, but the gateways' source of nodes lists the successor late.
// At 100 requests a second, bypasses show that the old pod is still needed. At one request in two seconds, only the word shows it.

const PER_SECOND = [0.5, 3, 8, 100] as const
/** The time from the deletion of the pod until the gateways' source lists the successor, in ms. */
const LATE_MS = 1200
const SLOW_LISTING_MS = 1500
const NAME = 'outer.example.com'

/** The gateways' source of nodes, made anew for each scenario. */
interface Source {
  readonly options?: RigOptions
  /** Set if the agent cannot read the place: the reason with which the hook is refused at once. */
  readonly hides?: string
  /** Makes the configuration, with the pod that will end. */
  make(rig: Rig, old: TestPod): void
  /** Called before the pod ends, once every worker has applied the configuration. */
  lose?(rig: Rig): Promise<void> | void
  /** Makes the source list the successor. */
  follow(rig: Rig, old: TestPod, successor: TestPod): void
  end?(): Promise<void> | undefined
}

const put = (rig: Rig, fields: JsonObject) => {
  rig.put('upstreams', 'web', { type: 'roundrobin', ...fields })
  rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
}
const list = (rig: Rig, ...pods: readonly TestPod[]) => put(rig, { nodes: arrayOf(pods) })

const registry = (type: string): Source => ({
  options: { discovery: true },
  make(rig, old) {
    rig.discovery?.register(type, 'WEB', arrayOf([old]))
    put(rig, { discovery_type: type, service_name: 'WEB' })
  },
  follow: (rig, _, successor) => rig.discovery?.register(type, 'WEB', arrayOf([successor]))
})

function named(name: string, service?: JsonObject): Source {
  const names = new Map<string, readonly string[]>()
  return {
    ...(!service && { hides: `${name}:28080 is a name of Service shop/web` }),
    options: { names },
    make(rig, old) {
      names.set(name, [old.ip])
      if (service)
        rig.kubernetes.store.create('services', {
          metadata: { namespace: 'shop', name: 'outer' },
          spec: service
        })
      put(rig, { nodes: [{ host: name, port: old.port, weight: 1 }] })
    },
    follow: (_, __, successor) => void names.set(name, [successor.ip])
  }
}

const SOURCES: Readonly<Record<string, () => Source>> = {
  'P2: nacos': () => registry('nacos'),
  'P2: dns': () => registry('dns'),
  'P2: the name of a headless Service': () => named('web.shop.svc.cluster.local'),
  'P2: an ExternalName': () => named(NAME, { type: 'ExternalName', externalName: NAME }),
  'P2: Kubernetes discovery': () => ({
    options: { discovery: true },
    make(rig, old) {
      rig.discovery?.set('shop/web', { http: arrayOf([old]) })
      put(rig, { discovery_type: 'kubernetes', service_name: 'shop/web:http' })
    },
    follow: (rig, _, successor) => rig.discovery?.set('shop/web', { http: arrayOf([successor]) })
  }),
  'P2: the Admin API of another etcd': () => {
    let other: Api | undefined
    return {
      options: { agent: false },
      make: list,
      async lose(rig) {
        other = await serveAdminApi({ store: createStore(), host: '127.0.0.1', port: 0, adminKey: 'edd1' })
        await rig.readyAgent({ APISIX_ADMIN_URL: other.url })
      },
      follow: (rig, _, successor) => list(rig, successor),
      end: () => other?.close()
    }
  },
  'P2: an emptied etcd': () => ({
    make: list,
    async lose(rig) {
      for (const worker of rig.gateways[0]!.workers) worker.loseWatch()
      rig.remove('routes', 'all')
      rig.remove('upstreams', 'web')
      await until('the agent lists nothing', () => !rig.agent.holder('upstreams/web'))
    },
    follow(rig, _, successor) {
      list(rig, successor)
      for (const worker of rig.gateways[0]!.workers) worker.restoreWatch()
    }
  }),
  'P9: an address that no pod has': () => {
    let ghost: JsonObject
    return {
      make(rig, old) {
        ghost = { host: rig.address(), port: old.port, weight: 1 }
        put(rig, { nodes: [ghost, ...arrayOf([old])] })
      },
      follow: (rig, _, successor) => put(rig, { nodes: [ghost, ...arrayOf([successor])] })
    }
  },
  'P14: the holders are listed slowly, and the pod is newer than the last listing': () => ({
    options: { config: { APISIX_ADMIN_TIMEOUT: `${2 * SLOW_LISTING_MS}ms` } },
    make: list,
    lose: rig =>
      void rig.admin.faults.inject({
        fault: { kind: 'slow', ms: SLOW_LISTING_MS },
        method: 'GET',
        path: '/apisix/admin/upstreams',
        exactly: true
      }),
    follow: (rig, _, successor) => list(rig, successor)
  })
}

async function replace(start: Start, source: Source, perSecond: number) {
  const rig = await start(source.options)
  const [old, successor] = [rig.pod('web-1'), rig.pod('web-2')]
  const backend = await rig.serve(old)
  await rig.serve(successor)
  rig.service('web', [old])
  source.make(rig, old)
  await rig.applied()
  await source.lose?.(rig)
  await until('the agent knows both pods', () => [old, successor].every(({ ip }) => rig.agent.knows(ip)))
  const load = rig.load(perSecond)

  rig.end(old)
  rig.service('web', [old, successor])
  let isAnswered = false
  const hook = rig.hook(old).finally(() => (isAnswered = true))
  await wait(LATE_MS)
  // An answer before this moment came while the pod was still the gateways' only node.
  const early = isAnswered ? (await hook).status : undefined
  source.follow(rig, old, successor)
  const { status, body } = await hook
  // A refused hook falls back to its sleep, which is longer than the delay of the source. So the pod still serves then.
  if (status === 200) void backend.terminate()
  const before = load.result.sent
  await until('requests came after the answer', () => load.result.sent > before + 1)
  const { failures } = await load.stop()
  await source.end?.()
  return { early, status, body, failures }
}

describe('feature: the only pod ends, and the gateways learn of its successor late', () => {
  const test = sideBySide({ barrier: true })

  for (const [name, make] of Object.entries(SOURCES))
    for (const perSecond of PER_SECOND)
      test(`no request fails, and no hook is answered before the successor is listed: ${name}, ${perSecond} requests a second`, async start => {
        const source = make()
        const { early, status, body, failures } = await replace(start, source, perSecond)
        expect(failures).to.deep.equal([])
        // On a very busy machine, the hook may have been refused by then, so only a 200 is wrong.
        expect(early).to.not.equal(200)
        const is = [status, body.evidence]
        if (source.hides === undefined) {
          expect(is, body.why).to.deep.equal([200, 'barrier'])
          // Once the successor is listed, no place lists the old pod. So either result may come first.
          expect(body.result).to.equal('drained')
        } else {
          expect(is).to.deep.equal([503, 'none'])
          expect(body.why).to.contain(source.hides)
        }
      })
})
