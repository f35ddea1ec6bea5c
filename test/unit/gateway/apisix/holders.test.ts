import { readFileSync } from 'node:fs'
import { expect } from 'chai'

import type { AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'
import { connectorsOf, holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import type { Resource } from '../../../../agent/rules/plan/holder.ts'

const object = (resource: Resource, value: Record<string, unknown>, id = 'x'): AdminObject => ({
  resource,
  id,
  value,
  revision: 5
})
const nodes = { '10.0.0.7:80': 1 }

describe('holders', () => {
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
