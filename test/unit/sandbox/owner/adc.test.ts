import { expect } from 'chai'
import { serveAdminApi } from '../../../../sandbox/apisix/admin-api.ts'
import type { Api } from '../../../../sandbox/apisix/api-server.ts'
import { serveStandaloneApi } from '../../../../sandbox/apisix/standalone-api.ts'
import { createStore as createConfigStore, keyOf } from '../../../../sandbox/apisix/store.ts'
import { etcdTarget, standaloneTarget } from '../../../../sandbox/owner/adc-target.ts'
import { adcBackendId, adcId, adcRouteId } from '../../../../sandbox/owner/adc-objects.ts'
import { startAdc, type AdcOptions } from '../../../../sandbox/owner/adc.ts'
import type { Owner } from '../../../../sandbox/owner/owner.ts'
import type { Slice } from '../../../../sandbox/owner/slices.ts'
import { eventually } from '../kubelet/harness.ts'

const KEY = 'adc-test-key'
const SERVICE = { namespace: 'shop', name: 'web', port: 80 }
const id = adcId(SERVICE)
/** A second backend of the rule. It gets every fourth request. */
const CANARY = { namespace: 'shop', name: 'canary', port: 80, weight: 1 }
const SPLIT = { ...SERVICE, weight: 3, others: [CANARY] }
const canaryId = adcBackendId(CANARY)

describe('sandbox/owner: an ingress controller 2.x', () => {
  const config = createConfigStore()
  const listeners = new Set<(slice: Slice) => void>()
  let current: Slice
  let canary: Slice | undefined
  let admin: Api
  let owner: Owner | undefined
  let requests: string[] = []
  /** How often the owner has read the slices: once at the start of each sync. */
  let reads = 0

  const sliceOf = (service: string, ips: readonly string[]): Slice => ({
    metadata: { namespace: 'shop', labels: { 'kubernetes.io/service-name': service } },
    endpoints: ips.map(ip => ({ addresses: [ip], conditions: { ready: true } })),
    ports: [{ name: 'http', port: 8080 }]
  })
  const slice = (...ips: string[]) => {
    current = sliceOf('web', ips)
    for (const listener of listeners) listener(current)
  }
  const canarySlice = (...ips: string[]) => {
    canary = sliceOf('canary', ips)
    for (const listener of listeners) listener(canary)
  }
  const start = (differs: Pick<AdcOptions, 'target'> & Partial<AdcOptions>) => {
    owner = startAdc({
      slices: {
        list: () => (reads++, canary ? [current, canary] : [current]),
        onChange: listener => {
          listeners.add(listener)
          return () => listeners.delete(listener)
        }
      },
      services: [SERVICE],
      syncMs: { minMs: 0, maxMs: 0 },
      periodMs: 60_000,
      seed: 1,
      ...differs
    })
    return owner
  }
  const hosts = () =>
    (config.get(keyOf('upstreams', id))?.value['nodes'] as { host: string }[] | undefined)?.map(n => n.host)

  beforeEach(async () => {
    requests = []
    canary = undefined
    slice('10.0.0.1', '10.0.0.2')
  })
  afterEach(async () => {
    await owner?.close()
    await admin.close()
    for (const resource of config.resources()) for (const { key } of config.list(resource)) config.delete(key)
  })
  const etcd = async () => {
    admin = await serveAdminApi({ store: config, host: '127.0.0.1', port: 0, adminKey: KEY })
    admin.listener.server.on('request', ({ method, url }) => requests.push(`${method} ${url}`))
    return etcdTarget({ url: admin.url, key: KEY })
  }

  it('splits a rule into a service and an upstream of the same id, and a route of another id', async () => {
    start({ target: await etcd() })
    await eventually(
      'the route is there',
      () => config.get(keyOf('routes', adcRouteId(SERVICE))) !== undefined
    )
    expect(config.get(keyOf('services', id))?.value).to.deep.include({ upstream_id: id })
    expect(config.get(keyOf('upstreams', id))?.value['labels']).to.deep.equal({
      'managed-by': 'apisix-ingress-controller'
    })
    expect(config.get(keyOf('upstreams', id))?.value).not.to.have.property('scheme')
    expect(adcRouteId(SERVICE)).not.to.equal(id)
    expect(hosts()).to.deep.equal(['10.0.0.1', '10.0.0.2'])
  })

  it('puts only objects that differ: reverts foreign writes, deletes unknown services, and writes nothing when idle', async () => {
    const target = await etcd()
    config.put(keyOf('services', 'by-hand'), { id: 'by-hand' })
    config.put(keyOf('upstreams', 'by-hand'), { id: 'by-hand', nodes: {} })
    start({ target, periodMs: 20 })
    await eventually(
      'the route is there',
      () => config.get(keyOf('routes', adcRouteId(SERVICE))) !== undefined
    )
    config.put(keyOf('upstreams', id), { id, nodes: [] })
    await eventually('the nodes are back', () => hosts()?.length === 2)
    await eventually('the service is gone', () => config.get(keyOf('services', 'by-hand')) === undefined)
    expect(config.get(keyOf('upstreams', 'by-hand'))).to.not.equal(undefined)
    const syncs = requests.filter(request => request === 'GET /apisix/admin/upstreams').length
    const puts = () => requests.filter(request => request.startsWith('PUT')).length
    const before = puts()
    await eventually(
      'it has synced five times more',
      () => requests.filter(request => request === 'GET /apisix/admin/upstreams').length > syncs + 5
    )
    expect(puts(), 'route, service, upstream, and the upstream again').to.equal(4)
    expect(puts()).to.equal(before)
  })

  const stored = (resource: string, key = id) => config.get(keyOf(resource, key))?.value
  const split = () =>
    (stored('services')?.['plugins'] as Record<string, unknown> | undefined)?.['traffic-split']

  it('several backends of a rule: traffic-split on the service, and an upstream with the label of the service', async () => {
    canarySlice('10.0.1.1')
    start({ target: await etcd(), services: [SPLIT] })
    await eventually('the route is there', () => stored('routes', adcRouteId(SERVICE)) !== undefined)
    expect(split()).to.deep.equal({
      rules: [{ weighted_upstreams: [{ weight: 3 }, { upstream_id: canaryId, weight: 1 }] }]
    })
    expect(stored('upstreams', canaryId)).to.deep.include({
      name: 'Service_shop_canary_80',
      labels: { 'managed-by': 'apisix-ingress-controller', __ADC_UPSTREAM_SERVICE_ID: id },
      nodes: [{ host: '10.0.1.1', port: 8080, weight: 1 }]
    })
    expect(stored('upstreams')?.['nodes']).to.deep.equal([
      { host: '10.0.0.1', port: 8080, weight: 3 },
      { host: '10.0.0.2', port: 8080, weight: 3 }
    ])
  })

  it('a backend without nodes is left out: its upstream and traffic-split disappear, and the other takes all requests', async () => {
    canarySlice('10.0.1.1')
    start({ target: await etcd(), services: [SPLIT] })
    await eventually('both are there', () => split() !== undefined)
    canarySlice()
    await eventually('its upstream is gone', () => stored('upstreams', canaryId) === undefined)
    expect(split()).to.equal(undefined)
    expect(hosts()).to.deep.equal(['10.0.0.1', '10.0.0.2'])
    canarySlice('10.0.1.2')
    slice()
    await eventually('the second takes the place of the first', () => hosts()?.join() === '10.0.1.2')
    expect(split()).to.equal(undefined)
  })

  it('sends a write that failed again, after 100 ms', async () => {
    const target = await etcd()
    admin.faults.inject({ fault: { kind: 'status', status: 503 }, times: 2, method: 'PUT' })
    const { writes } = start({ target })
    await eventually('it is written', () => writes.length === 1)
    expect(writes[0]!.acceptedAt).to.not.equal(undefined)
    expect(hosts()).to.have.length(2)
  })

  it('writes the state at the start of the sync, however long the sync takes', async () => {
    const running = start({ target: await etcd(), syncMs: { minMs: 100, maxMs: 100 } })
    await eventually('the first sync is over', () => running.writes.length === 1)
    slice('10.0.0.1', '10.0.0.2', '10.0.0.3')
    const before = reads
    await eventually('the next sync has begun', () => reads > before)
    slice('10.0.0.2', '10.0.0.3')
    await eventually('three syncs', () => running.writes.length === 3)
    expect(running.writes.map(({ nodes }) => nodes.length)).to.deep.equal([2, 3, 2])
    expect(hosts()).to.deep.equal(['10.0.0.2', '10.0.0.3'])
  })

  it('writes nothing while it does not lead', async () => {
    const running = start({ target: await etcd() })
    await eventually('it is written', () => hosts()?.length === 2)
    running.lead(false)
    slice('10.0.0.2')
    await new Promise(resolve => setTimeout(resolve, 30))
    expect(hosts()).to.have.length(2)
    running.lead(true)
    await eventually('it catches up', () => hosts()?.length === 1)
  })

  it('without etcd: puts one document, and only changed items get a new version', async () => {
    admin = await serveStandaloneApi({ store: config, host: '127.0.0.1', port: 0, adminKey: KEY })
    start({ target: standaloneTarget(() => [{ url: admin.url, key: KEY }]) })
    await eventually('it is taken in', () => hosts()?.length === 2)
    const indexOf = (type: string) =>
      config.get(keyOf(type, type === 'routes' ? adcRouteId(SERVICE) : id))?.value['modifiedIndex']
    const [route, upstream] = [indexOf('routes'), indexOf('upstreams')]
    slice('10.0.0.2')
    await eventually('the change is taken in', () => hosts()?.length === 1)
    expect(indexOf('routes')).to.equal(route)
    expect(indexOf('upstreams')).to.be.above(Number(upstream))
  })

  it('without etcd: two syncs in one millisecond are two documents', async () => {
    admin = await serveStandaloneApi({ store: config, host: '127.0.0.1', port: 0, adminKey: KEY })
    const sync = standaloneTarget(() => [{ url: admin.url, key: KEY }])
    const objects = (host: string) => ({
      upstreams: [{ id: 'web', type: 'roundrobin', nodes: [{ host, port: 80, weight: 1 }] }],
      services: [],
      routes: []
    })
    const { now } = Date
    Date.now = () => 1_800_000_000_000
    try {
      await sync(objects('10.0.0.1'))
      await sync(objects('10.0.0.2'))
    } finally {
      Date.now = now
    }
    expect(JSON.stringify(config.get(keyOf('upstreams', 'web'))?.value)).to.contain('10.0.0.2')
  })
})
