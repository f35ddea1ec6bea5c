import { expect } from 'chai'
import type { AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'
import { createHolderIndex } from '../../../../agent/gateway/inventory/holder-index.ts'
import type { Resource } from '../../../../agent/rules/plan/holder.ts'

const object = (resource: Resource, id: string, value: AdminObject['value'], revision = 1): AdminObject => ({
  resource,
  id,
  value,
  revision
})
const upstream = { nodes: { '10.0.0.1:80': 1 } }
const L4 = ['upstreams/u', 'upstreams/of-service', 'services/inline/upstream']

describe('holder index: holders of stream routes', () => {
  const listed: Readonly<Partial<Record<Resource, readonly AdminObject[]>>> = {
    upstreams: ['u', 'of-service', 'http'].map(id => object('upstreams', id, upstream)),
    services: [
      object('services', '7', { upstream_id: 'of-service' }),
      object('services', 'inline', { upstream }),
      object('services', 'http', { upstream_id: 'http', upstream })
    ],
    stream_routes: [
      object('stream_routes', 'a', { upstream_id: 'u' }),
      object('stream_routes', 'b', { service_id: 7 }),
      object('stream_routes', 'c', { service_id: 'inline' })
    ]
  }

  for (const order of [
    ['upstreams', 'services', 'stream_routes'],
    ['stream_routes', 'services', 'upstreams']
  ] as const)
    it(`is L4, by any kind of reference, in the order ${order.join(', ')}`, () => {
      const index = createHolderIndex()
      for (const resource of order) index.replace(resource, listed[resource] ?? [], 0)
      expect([...index.holders().keys()].filter(index.isL4)).to.have.members(L4)
      expect(index.holders().size).to.equal(5)
    })

  it('follows a service that refers to another upstream', () => {
    const index = createHolderIndex()
    for (const resource of ['stream_routes', 'services', 'upstreams'] as const)
      index.replace(resource, listed[resource] ?? [], 0)
    index.replace('services', [object('services', '7', { upstream_id: 'http' }, 2)], 1)
    expect(['upstreams/of-service', 'upstreams/http'].map(index.isL4)).to.deep.equal([false, true])
  })
})
