import { expect } from 'chai'
import { serveAdminApi } from '../../../../sandbox/apisix/admin-api.ts'
import type { Api } from '../../../../sandbox/apisix/api-server.ts'
import {
  createStore as createConfigStore,
  keyOf,
  type Store as ConfigStore
} from '../../../../sandbox/apisix/store.ts'
import { createStore, type Store } from '../../../../sandbox/kubernetes/store.ts'
import type { SliceEndpoint } from '../../../../sandbox/kubernetes/objects.ts'
import { startOwner, upstreamId, type Owner, type OwnerOptions } from '../../../../sandbox/owner/owner.ts'
import { storeSlices } from '../../../../sandbox/owner/store-slices.ts'
import { ranMs } from '../../../build/apisix.ts'
import { eventually, ranBetween } from '../kubelet/harness.ts'

const KEY = 'owner-test-key'
const SERVICE = { namespace: 'shop', name: 'web', port: 80 }

describe('sandbox/owner: an ingress controller 1.8', () => {
  let kubernetes: Store
  let config: ConfigStore
  let admin: Api
  let owner: Owner | undefined

  beforeEach(async () => {
    kubernetes = createStore()
    config = createConfigStore()
    admin = await serveAdminApi({ host: '127.0.0.1', port: 0, adminKey: KEY, store: config })
  })
  afterEach(async () => {
    await owner?.close()
    await admin.close()
    config.close()
  })

  const start = (differs: Partial<OwnerOptions> = {}) => {
    owner = startOwner({
      slices: storeSlices(kubernetes),
      admin: { url: admin.url, key: KEY },
      services: [SERVICE],
      lag: { minMs: 0, maxMs: 0 },
      seed: 1,
      ...differs
    })
    return owner
  }
  const endpoint = (ip: string, conditions: SliceEndpoint['conditions'] = { ready: true }) => ({
    addresses: [ip],
    conditions
  })
  const slice = (...endpoints: SliceEndpoint[]) => {
    const draft = {
      metadata: { namespace: 'shop', name: 'web-abc', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4' as const,
      endpoints,
      ports: [{ name: 'http', port: 8080 }]
    }
    if (kubernetes.get('endpointslices', 'shop', 'web-abc')) kubernetes.update('endpointslices', draft)
    else kubernetes.create('endpointslices', draft)
  }
  const slice2 = () => {
    kubernetes.create('endpointslices', {
      metadata: { namespace: 'shop', name: 'api-abc', labels: { 'kubernetes.io/service-name': 'api' } },
      addressType: 'IPv4',
      endpoints: [endpoint('10.0.9.1')],
      ports: [{ name: 'http', port: 8080 }]
    })
  }
  const id = upstreamId(SERVICE)
  const upstream = () => config.get(keyOf('upstreams', id))?.value
  const hosts = () => (upstream()?.nodes as { host: string }[] | undefined)?.map(({ host }) => host)

  it('PUTs the upstream of a Service as 1.8 writes it', async () => {
    slice(endpoint('10.0.0.2'), endpoint('10.0.0.1'))
    start()
    await eventually('the upstream is there', () => upstream() !== undefined)
    expect(upstream()).to.deep.include({
      name: 'shop_web_80',
      type: 'roundrobin',
      labels: { 'managed-by': 'apisix-ingress-controller' },
      // The nodes have the order of the slice.
      nodes: [
        { host: '10.0.0.2', port: 8080, weight: 100 },
        { host: '10.0.0.1', port: 8080, weight: 100 }
      ]
    })
    expect(id, 'crc32 in hex').to.match(/^[0-9a-f]{1,8}$/)
  })

  it('writes an upstream for each subset of a Service, with the nodes that have its labels', async () => {
    const subset = (name: string, host: string) => ({
      ...SERVICE,
      subset: { name, takes: (other: string) => other === host }
    })
    const subsets = [subset('v1', '10.0.0.1'), subset('v2', '10.0.0.2')]
    slice(endpoint('10.0.0.1'), endpoint('10.0.0.2'))
    const { writes } = start({ services: [SERVICE, ...subsets] })
    await eventually('all are there', () => writes.length === 3)
    const written = () =>
      Object.fromEntries(
        config.list('upstreams').map(({ value }) => {
          const nodes = value['nodes'] as { host: string }[]
          return [value['name'] as string, nodes.map(({ host }) => host)]
        })
      )
    expect(written()).to.deep.equal({
      shop_web_80: ['10.0.0.1', '10.0.0.2'],
      shop_web_v1_80: ['10.0.0.1'],
      shop_web_v2_80: ['10.0.0.2']
    })
    slice(endpoint('10.0.0.2'))
    await eventually('the event is over', () => writes.length === 5)
    expect(written(), 'one event, and only what differs').to.deep.equal({
      shop_web_80: ['10.0.0.2'],
      shop_web_v1_80: [],
      shop_web_v2_80: ['10.0.0.2']
    })
  })

  it('uses the condition ready and nothing else', async () => {
    slice(
      endpoint('10.0.0.1', {}),
      endpoint('10.0.0.2', { ready: false, serving: true, terminating: true }),
      endpoint('10.0.0.3', { ready: true, terminating: true })
    )
    start()
    await eventually('the upstream is there', () => upstream() !== undefined)
    expect(hosts()).to.deep.equal(['10.0.0.1', '10.0.0.3'])
  })

  it('is late by its lag, and by no more than its queue', async () => {
    slice(endpoint('10.0.0.1'))
    const { writes } = start({ lag: { minMs: 200, maxMs: 400 } })
    await eventually('the first write', () => writes.length === 1)
    slice(endpoint('10.0.0.2'))
    await eventually('the second write', () => writes.length === 2)
    const { eventAt, acceptedAt } = writes[1]!
    expect(acceptedAt! - eventAt).to.be.at.least(199)
    expect(ranBetween(eventAt, acceptedAt!)).to.be.below(1200)
    expect(hosts()).to.deep.equal(['10.0.0.2'])
  })

  it('compares with its own cache: a node removed by another writer stays removed while nothing changes', async () => {
    slice(endpoint('10.0.0.1'), endpoint('10.0.0.2'))
    const { writes } = start({ services: [SERVICE, { ...SERVICE, name: 'api' }] })
    await eventually('the first writes', () => writes.length === 2)
    config.put(keyOf('upstreams', id), {
      ...upstream()!,
      nodes: [{ host: '10.0.0.1', port: 8080, weight: 100 }]
    })
    slice(endpoint('10.0.0.1'), endpoint('10.0.0.2', { ready: true, serving: true }))
    slice2()
    await eventually('it is past that event', () => writes.length === 3)
    expect(hosts()).to.deep.equal(['10.0.0.1'])
    slice(endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('10.0.0.3'))
    await eventually('the next write', () => writes.length === 4)
    expect(hosts(), 'and the next event puts it back').to.deep.equal(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
  })

  it('writes an upstream without nodes when there is no ready endpoint', async () => {
    slice(endpoint('10.0.0.1'))
    const { writes } = start()
    await eventually('the first write', () => writes.length === 1)
    slice()
    await eventually('the second write', () => writes.length === 2)
    expect(upstream()?.nodes).to.deep.equal([])
  })

  it('tries again a second after a failure', async () => {
    slice(endpoint('10.0.0.1'))
    admin.faults.inject({ fault: { kind: 'status', status: 503 }, times: 1 })
    const { writes } = start()
    await eventually('the second try', () => writes.length === 2)
    expect(writes.map(({ acceptedAt }) => acceptedAt !== undefined)).to.deep.equal([false, true])
    expect(writes[1]!.acceptedAt! - writes[0]!.eventAt).to.be.at.least(990)
  })

  it('ends at once, in the middle of a wait', async () => {
    slice(endpoint('10.0.0.1'))
    const running = start({ lag: { minMs: 60_000, maxMs: 60_000 } })
    await eventually('the first write', () => running.writes.length === 1)
    slice(endpoint('10.0.0.2'))
    const before = performance.now()
    await running.close()
    expect(ranMs(before)).to.be.below(500)
    expect(running.writes).to.have.length(1)
  })
})
