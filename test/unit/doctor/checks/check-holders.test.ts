import { expect } from 'chai'
import { systemClock } from '../../../../agent/base/clock.ts'
import { checkHidden } from '../../../../agent/doctor/checks/check-holders.ts'
import { createClusterLists, type Pages } from '../../../../agent/doctor/checks/cluster-lists.ts'
import { startAdmin } from '../../../build/apisix.ts'

const metadata = (name: string) => ({ namespace: 'shop', name, uid: name })

/** The objects as the API server lists them, with one page for each list. */
const LISTED = {
  pods: ['web-1', 'web-2'].map((name, i) => ({
    metadata: metadata(name),
    spec: { containers: [] },
    status: { phase: 'Running', podIP: `10.0.0.${i + 1}` }
  })),
  slices: ['web-1', 'web-2'].map((name, i) => ({
    metadata: { ...metadata(`slice-${name}`), labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: [`10.0.0.${i + 1}`], targetRef: { kind: 'Pod', name, uid: name } }]
  })),
  services: [{ metadata: metadata('web'), spec: { clusterIP: '10.96.0.12', ports: [{ port: 80 }] } }]
}

async function* pages(objects: readonly unknown[]) {
  for (const object of objects) yield [object]
}

async function* refused() {
  yield []
  throw new Error('GET /api/v1/services: status 403')
}

describe('doctor: places that hide pods', () => {
  let apisix: Awaited<ReturnType<typeof startAdmin>>
  beforeEach(async () => (apisix = await startAdmin({ pageSize: 10 })))
  afterEach(() => apisix.close())

  const found = (
    differs: Partial<Record<'pods' | 'slices' | 'services', Pages>> = {},
    coversL4: () => Promise<boolean> = () => Promise.reject(new Error('nothing is proxied as L4'))
  ) =>
    checkHidden(
      createClusterLists({
        clock: systemClock,
        isOnlyApisix: async () => false,
        holders: async () => apisix.client,
        lists: {
          pods: () => pages(LISTED.pods),
          slices: () => pages(LISTED.slices),
          services: () => pages(LISTED.services),
          ...differs
        }
      }),
      coversL4
    )(new AbortController().signal)

  it('are warnings, each with holder, node, Service, pods and remedy', async () => {
    apisix.put('upstreams', 'web', { name: 'shop_web', type: 'roundrobin', nodes: { '10.96.0.12:80': 1 } })
    const [finding, ...others] = await found()
    expect(others).to.deep.equal([])
    expect(finding).to.deep.include({
      name: 'hidden',
      level: 'warn',
      what: 'upstreams/web (shop_web): 10.96.0.12:80 is the ClusterIP of Service shop/web; it may lead to 2 pods (shop/web-1, shop/web-2)'
    })
    expect(finding?.change).to.contain('resolveGranularity: endpoint')
  })

  it('are L4 places, unless every gateway covers L4', async () => {
    apisix.put('upstreams', 'db', { type: 'roundrobin', scheme: 'tcp', nodes: { '10.0.0.1:5432': 1 } })
    const [finding] = await found({}, async () => false)
    expect(finding?.what).to.contain('is proxied as L4 (TCP, UDP)')
    expect((await found({}, async () => true)).map(({ level }) => level)).to.deep.equal(['ok'])
  })

  it('are none if pods are listed by address', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: { '10.0.0.1:8080': 1 } })
    expect(await found()).to.deep.equal([
      { name: 'hidden', level: 'ok', what: 'no place leads to pods without listing them', change: '' }
    ])
  })

  it('are those that need no Service if Services cannot be listed', async () => {
    const nodes = { '10.96.0.12:80': 1 }
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes })
    expect((await found({ services: refused })).map(({ level }) => level)).to.deep.equal(['ok'])
    apisix.put('upstreams', 'db', { type: 'roundrobin', scheme: 'tcp', nodes: { '10.0.0.1:5432': 1 } })
    const [finding] = await found({ services: refused }, async () => false)
    expect(finding?.what).to.contain('is proxied as L4 (TCP, UDP)')
  })
})
