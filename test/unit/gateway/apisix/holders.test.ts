import { readFileSync } from 'node:fs'
import { expect } from 'chai'

import type { AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'
import { observable } from '../../../../agent/gateway/apisix/control-api.ts'
import { connectorsOf, holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import type { Resource } from '../../../../agent/rules/plan/holder.ts'

const object = (resource: Resource, value: Record<string, unknown>, id = 'x'): AdminObject => ({
  resource,
  id,
  value,
  revision: 5
})
const nodes = { '10.0.0.7:80': 1 }
const split = {
  'traffic-split': { rules: [{ weighted_upstreams: [{ weight: 1 }, { upstream: { nodes } }] }] }
}

describe('holders', () => {
  it('finds an upstream, inline upstreams and traffic-split, each with its path', () => {
    expect(holdersOf(object('upstreams', { nodes })).map(h => [h.key, h.path])).to.deep.equal([
      ['upstreams/x', []]
    ])
    for (const resource of ['services', 'routes', 'stream_routes'] as const)
      expect(holdersOf(object(resource, { upstream: { nodes } })).map(h => [h.key, h.path])).to.deep.equal([
        [`${resource}/x/upstream`, ['upstream']]
      ])
    for (const resource of [
      'routes',
      'services',
      'plugin_configs',
      'consumers',
      'consumer_groups',
      'global_rules'
    ] as const)
      expect(holdersOf(object(resource, { plugins: split })).map(h => [h.key, h.path])).to.deep.equal([
        [
          `${resource}/x/plugins/traffic-split/0/1`,
          ['plugins', 'traffic-split', 'rules', 0, 'weighted_upstreams', 1, 'upstream']
        ]
      ])
  })

  it('finds both an inline upstream and traffic-split in one route', () => {
    const found = holdersOf(object('routes', { upstream: { nodes: [] }, plugins: split, name: 'shop' }))
    expect(found.map(h => [h.key, h.form, h.name, h.revision])).to.deep.equal([
      ['routes/x/upstream', 'array', 'shop', 5],
      ['routes/x/plugins/traffic-split/0/1', 'map', 'shop', 5]
    ])
  })

  it('finds what plugins connect to by themselves, in known fields of known plugins', () => {
    const plugins = {
      'forward-auth': { uri: 'http://a.shop.svc:80/x' },
      'proxy-rewrite': { uri: '/no', host: 'no' },
      'ai-proxy-multi': { instances: [{ override: { endpoint: 'https://u@b/v1' } }, { name: 'host' }] },
      'kafka-logger': { brokers: [{ host: 'c', port: 9092 }], broker_list: { d: 9092 } },
      'limit-count': { redis_cluster_nodes: ['10.0.0.1:6379', '[fd00::1]:6379'], policy: 'redis', count: 5 },
      workflow: { rules: [{ actions: [['limit-count', { redis_host: 'e' }]] }] },
      opa: { host: 7 }
    }
    const found = connectorsOf(object('routes', { plugins, upstream: { scheme: 'kafka', nodes } }))
    expect(found.map(h => [h.key.slice('routes/x/'.length), h.nodes.map(({ key }) => key)])).to.deep.equal([
      ['kafka', ['10.0.0.7:80']],
      ['plugins/forward-auth', ['a.shop.svc:80']],
      ['plugins/ai-proxy-multi', ['b']],
      ['plugins/kafka-logger', ['c', 'd']],
      ['plugins/limit-count', ['10.0.0.1:6379', '[fd00::1]:6379']],
      ['plugins/workflow', ['e']]
    ])
  })

  it('leaves holders that use discovery alone', () => {
    const [found] = holdersOf(
      object('upstreams', { discovery_type: 'kubernetes', service_name: 'shop/web:http', nodes })
    )
    expect(found).to.deep.include({ nodes: [], discovery: { type: 'kubernetes', service: 'shop/web:http' } })
    expect(observable(found!)).to.equal(true)
    const [eureka] = holdersOf(object('upstreams', { discovery_type: 'eureka', service_name: 'WEB' }))
    expect(observable(eureka!)).to.equal(false)
  })

  it('finds nothing in an object without nodes, however odd the object', () => {
    for (const value of [
      {},
      { upstream: 'x', plugins: [] },
      { plugins: { 'traffic-split': { rules: {} } } },
      {
        plugins: {
          'traffic-split': { rules: [null, { weighted_upstreams: 'x' }, { weighted_upstreams: [1] }] }
        }
      },
      { upstream_id: 'web' }
    ])
      expect(holdersOf(object('routes', value))).to.deep.equal([])
    expect(holdersOf(object('upstreams', { type: 'roundrobin' }))).to.deep.equal([])
  })

  it('names the other writer of an object', () => {
    const owner = (labels: Record<string, string>) =>
      holdersOf(object('upstreams', { nodes, labels }))[0]?.owner
    expect(owner({ 'managed-by': 'apisix-ingress-controller' })).to.equal('ingress-controller-1')
    expect(owner({ 'manager-by': 'apisix-ingress-controller', 'k8s/name': 'shop' })).to.equal(
      'ingress-controller-2'
    )
    expect(owner({ 'managed-by': 'apisix-ingress-controller', __ADC_UPSTREAM_SERVICE_ID: 'a1' })).to.equal(
      'ingress-controller-2'
    )
    expect(owner({ team: 'shop' })).to.equal('unknown')
  })

  it('reports which holders the Control API shows', () => {
    const of = (resource: Resource) =>
      holdersOf(object(resource, { nodes, upstream: { nodes }, plugins: split }))
    for (const resource of ['upstreams', 'services', 'routes'] as const)
      expect(of(resource).every(observable), resource).to.equal(true)
    for (const resource of [
      'stream_routes',
      'plugin_configs',
      'consumers',
      'consumer_groups',
      'global_rules'
    ] as const)
      expect(of(resource).some(observable), resource).to.equal(false)
  })

  it('reads every object of the recordings', () => {
    const { exchanges } = JSON.parse(readFileSync('test/recordings/admin-api-etcd.json', 'utf8')) as {
      exchanges: {
        name: string
        response: { body: { list?: { key: string; value: Record<string, unknown> }[] } }
      }[]
    }
    const found = exchanges
      .filter(e => e.name.startsWith('list '))
      .flatMap(e => e.response.body.list ?? [])
      .flatMap(({ key, value }) => {
        const [, , resource, id] = key.split('/')
        return holdersOf(object(resource as Resource, value, id))
      })
    expect(new Set(found.map(h => h.key))).to.deep.equal(
      new Set([
        'upstreams/api',
        'upstreams/disc',
        'upstreams/web',
        'services/svc/upstream',
        'routes/r-inline/upstream',
        'routes/r-split/plugins/traffic-split/0/0'
      ])
    )
  })
})
