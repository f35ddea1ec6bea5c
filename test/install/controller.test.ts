import { expect } from 'chai'
import { serveAdminApi } from '../../sandbox/apisix/admin-api.ts'
import type { Api } from '../../sandbox/apisix/api-server.ts'
import { createStore, type Store } from '../../sandbox/apisix/store.ts'
import { upstream, upstreamId } from '../../sandbox/owner/owner.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { createKinds, startController, type Controller } from './controller.ts'
import { CONTROLLER_VERSION } from './controller-build.ts'
import { apisixRoute, ingress } from './routes.ts'
import { translateAdmin } from './translate.ts'

const KEY = 'controller-test-key'
const SERVICE = { namespace: 'shop', name: 'web', port: 80 }

/** Compares the reads and writes of the real ingress controller 1.8 with those of the sandbox's owner. */
describe(`the real ingress controller ${CONTROLLER_VERSION} and the Admin API stand-in`, function () {
  this.timeout(180_000)
  let api: ApiServer
  let store: Store
  let admin: Api
  let translated: Awaited<ReturnType<typeof translateAdmin>>
  let controller: Controller

  before(async () => {
    api = await startApiServer()
    await createKinds(api)
    store = createStore()
    admin = await serveAdminApi({ store, host: '127.0.0.1', port: 0, adminKey: KEY })
    translated = await translateAdmin(admin.url)
    await post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await post('/api/v1/namespaces/shop/services', {
      metadata: { name: 'web' },
      spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }] }
    })
    await post('/api/v1/namespaces/shop/endpoints', endpoints('10.0.0.2', '10.0.0.1'))
    controller = startController({ kubeconfig: api.kubeconfig, admin: { url: translated.url, key: KEY } })
  })
  after(async () => {
    await controller?.stop()
    translated?.close()
    await admin?.close()
    await api?.stop()
  })

  const post = async (path: string, body: object) => {
    const { status, json } = await api.call('POST', path, body)
    expect(status, JSON.stringify(json)).to.equal(201)
  }
  const endpoints = (...ips: readonly string[]) => ({
    metadata: { name: 'web' },
    subsets: [{ addresses: ips.map(ip => ({ ip })), ports: [{ name: 'http', port: 8080 }] }]
  })
  const stored = () => store.get(`/apisix/upstreams/${upstreamId(SERVICE)}`)?.value
  const hosts = () => (stored()?.['nodes'] as { host: string }[] | undefined)?.map(({ host }) => host).join()
  const writes = () => translated.passed.filter(({ method }) => method !== 'GET')

  it('writes the upstream of an ApisixRoute as the sandbox does: id, fields, array of nodes, weights', async () => {
    await post('/apis/apisix.apache.org/v2/namespaces/shop/apisixroutes', apisixRoute('web', 80))
    await waitFor('the upstream', () => stored() !== undefined)
    const { id, create_time: _created, update_time: _updated, ...fields } = stored()!
    expect(id).to.equal(upstreamId(SERVICE))
    // The nodes have the order of the Endpoints. The test does not compare the order.
    const nodes = ['127.0.0.1', '127.0.0.2'].map(host => ({ host, port: 8080, weight: 100 }))
    expect({
      ...fields,
      nodes: (fields['nodes'] as { host: string }[]).toSorted((a, b) => a.host.localeCompare(b.host))
    }).to.deep.equal({ ...upstream(SERVICE, nodes) })
  })

  it('writes the upstream of an Ingress under the same id', async () => {
    const before = store.list('routes').length
    await post('/apis/networking.k8s.io/v1/namespaces/shop/ingresses', ingress('web', 80))
    await waitFor('its route', () => store.list('routes').length > before)
    expect(store.list('upstreams')).to.have.length(1)
    for (const { value } of store.list('routes')) expect(value['upstream_id']).to.equal(upstreamId(SERVICE))
  })

  it('PUTs the whole upstream once for a change of the endpoints, and nothing else', async () => {
    const count = writes().length
    const path = '/api/v1/namespaces/shop/endpoints/web'
    expect((await api.call('PUT', path, endpoints('10.0.0.1'))).status).to.equal(200)
    await waitFor('the node is out', () => hosts() === '127.0.0.1')
    expect(
      writes()
        .slice(count)
        .map(({ method, path: to }) => `${method} ${to}`)
    ).to.deep.equal([`PUT /apisix/admin/upstreams/${upstreamId(SERVICE)}`])
  })

  it('does not notice a node that another writer removed, and puts it back at the next change', async () => {
    const key = `/apisix/upstreams/${upstreamId(SERVICE)}`
    const path = '/api/v1/namespaces/shop/endpoints/web'
    await api.call('PUT', path, endpoints('10.0.0.1', '10.0.0.2'))
    await waitFor('both nodes', () => hosts()?.split(',').length === 2)
    const { nodes } = stored() as { nodes: { host: string }[] }
    store.put(key, { ...stored()!, nodes: nodes.filter(({ host }) => host !== '127.0.0.1') as object as [] })
    // A change of another Service wakes the controller, which leaves this Service alone.
    const count = writes().length
    await post('/api/v1/namespaces/shop/services', {
      metadata: { name: 'api' },
      spec: { ports: [{ name: 'http', port: 80 }] }
    })
    await post('/api/v1/namespaces/shop/endpoints', {
      ...endpoints('10.0.0.9'),
      metadata: { name: 'api' }
    })
    await post('/apis/apisix.apache.org/v2/namespaces/shop/apisixroutes', apisixRoute('api', 80))
    await waitFor('the other upstream', () => store.list('upstreams').length === 2)
    expect(
      writes()
        .slice(count)
        .some(({ path: to }) => to.includes(upstreamId(SERVICE)))
    ).to.equal(false)
    expect(hosts()).to.equal('127.0.0.2')
    await api.call('PUT', path, endpoints('10.0.0.1', '10.0.0.2', '10.0.0.3'))
    await waitFor('it is back', () => hosts()?.split(',').includes('127.0.0.1') === true)
  })

  it('writes an upstream for each subset, and leads to the second backend by traffic-split, as the sandbox does', async () => {
    const subset = (version: string) => ({
      namespace: 'shop',
      name: 'split',
      port: 80,
      subset: { name: version, takes: () => true }
    })
    const ips = { v1: '10.0.1.1', v2: '10.0.1.2' }
    // Admission refuses a pod whose ServiceAccount does not exist.
    await post('/api/v1/namespaces/shop/serviceaccounts', { metadata: { name: 'default' } })
    for (const [version, podIP] of Object.entries(ips)) {
      const path = '/api/v1/namespaces/shop/pods'
      const metadata = { name: `split-${version}`, labels: { version } }
      const containers = [{ name: 'app', image: 'app' }]
      await post(path, { metadata, spec: { automountServiceAccountToken: false, containers } })
      const { json } = await api.call('GET', `${path}/split-${version}`)
      const pod = { ...(json as object), status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }] } }
      expect((await api.call('PUT', `${path}/split-${version}/status`, pod)).status).to.equal(200)
    }
    await post('/apis/apisix.apache.org/v2/namespaces/shop/apisixupstreams', {
      apiVersion: 'apisix.apache.org/v2',
      kind: 'ApisixUpstream',
      metadata: { name: 'split' },
      spec: { subsets: Object.keys(ips).map(version => ({ name: version, labels: { version } })) }
    })
    await post('/api/v1/namespaces/shop/services', {
      metadata: { name: 'split' },
      spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }] }
    })
    const ofBoth = { ...endpoints(...Object.values(ips)), metadata: { name: 'split' } }
    await post('/api/v1/namespaces/shop/endpoints', { ...ofBoth, subsets: [] })
    const backends = Object.keys(ips).map((version, i) => ({
      serviceName: 'split',
      servicePort: 80,
      subset: version,
      weight: 3 - 2 * i
    }))
    const http = [{ name: 'all', match: { paths: ['/split'] }, backends }]
    const route = { ...apisixRoute('split', 80), spec: { http } }
    await post('/apis/apisix.apache.org/v2/namespaces/shop/apisixroutes', route)
    const [first, second] = [upstreamId(subset('v1')), upstreamId(subset('v2'))]
    const of = (id: string) => store.get(`/apisix/upstreams/${id}`)?.value
    await waitFor('both upstreams', () => of(first) !== undefined && of(second) !== undefined)
    expect((await api.call('PUT', '/api/v1/namespaces/shop/endpoints/split', ofBoth)).status).to.equal(200)
    const hasNodes = (id: string) => (of(id)?.['nodes'] as unknown[] | undefined)?.[0] !== undefined
    await waitFor('their nodes', () => hasNodes(first) && hasNodes(second))
    for (const [version, host] of Object.entries({ v1: '127.0.1.1', v2: '127.0.1.2' })) {
      const {
        id: _id,
        create_time: _created,
        update_time: _updated,
        ...fields
      } = of(upstreamId(subset(version)))!
      expect(fields).to.deep.equal({ ...upstream(subset(version), [{ host, port: 8080, weight: 100 }]) })
    }
    const written = () => store.list('routes').find(({ value }) => value['upstream_id'] === first)?.value
    await waitFor('the route', () => written() !== undefined)
    expect(written()?.['plugins']).to.deep.equal({
      'traffic-split': {
        rules: [{ weighted_upstreams: [{ upstream_id: second, weight: 1 }, { weight: 3 }] }]
      }
    })
  })

  it('empties the nodes of a Service without endpoints', async () => {
    await api.call('PUT', '/api/v1/namespaces/shop/endpoints/web', { metadata: { name: 'web' }, subsets: [] })
    await waitFor('no node is left', () => hosts() === '')
  })

  it('got an answer to every request, and no refusal but for the stream routes, which are off', async () => {
    await waitFor('each answer', () => translated.passed.every(({ status }) => status !== undefined))
    const refused = translated.passed.filter(({ status = 0 }) => status >= 400 && status !== 404)
    expect(new Set(refused.map(({ path, status }) => `${status} ${path}`))).to.deep.equal(
      new Set(['400 /apisix/admin/stream_routes'])
    )
    // The controller reads an object before it creates it.
    for (const { method, path, status } of translated.passed)
      if (status === 404) expect(`${method} ${path}`).to.match(/^GET \/apisix\/admin\/(upstreams|routes)\//)
  })
})
