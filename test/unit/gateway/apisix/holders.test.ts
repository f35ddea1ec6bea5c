import { readFileSync } from 'node:fs'
import { expect } from 'chai'

import type { AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'
import { holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import type { Resource } from '../../../../agent/rules/plan/holder.ts'

const object = (resource: Resource, value: Record<string, unknown>, id = 'x'): AdminObject => ({
  resource,
  id,
  value,
  revision: 5
})

describe('holders', () => {
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
        'routes/r-split/traffic-split/0/0'
      ])
    )
  })
})
