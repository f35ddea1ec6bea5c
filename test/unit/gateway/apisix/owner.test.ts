import { expect } from 'chai'
import { createHolderIndex } from '../../../../agent/gateway/inventory/holder-index.ts'
import type { AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'
import { writerOf } from '../../../../agent/gateway/apisix/holders.ts'

const nodes = { '10.0.0.1:80': 1 }
const object = (resource: AdminObject['resource'], id: string, value: object): AdminObject => ({
  resource,
  id,
  value: { ...value },
  revision: 1
})
const FIRST = { 'managed-by': 'apisix-ingress-controller' }
const SECOND = { 'manager-by': 'apisix-ingress-controller' }

describe('who writes a holder', () => {
  const writer = (upstream: AdminObject, services: AdminObject[] = []) => {
    const index = createHolderIndex()
    index.replace('upstreams', [upstream], 0)
    index.replace('services', services, 0)
    return writerOf(index.holders().get(`upstreams/${upstream.id}`)!)
  }

  it('is detected from labels', () => {
    expect(writer(object('upstreams', 'a', { nodes }))).to.match(/^an unknown writer/)
    expect(writer(object('upstreams', 'a', { nodes, labels: FIRST }))).to.equal(
      'ingress controller 1.x (its label managed-by)'
    )
    expect(writer(object('upstreams', 'a', { nodes, labels: { __ADC_UPSTREAM_SERVICE_ID: 'b' } }))).to.equal(
      'ingress controller 2.x (its label __ADC_UPSTREAM_SERVICE_ID)'
    )
  })

  it('is detected from an id that is a hash of the name', () => {
    // The id is crc32('shop_web_80').
    expect(writer(object('upstreams', 'b41c9837', { nodes, name: 'shop_web_80' }))).to.match(
      /^ingress controller 1.x \(its id/
    )
    expect(writer(object('upstreams', 'other', { nodes, name: 'shop_web_80' }))).to.match(/^an unknown/)
  })

  it('is detected from the service of the same id, in any order of listing, and detected again when that service is removed', () => {
    const upstream = object('upstreams', 'a', { nodes, labels: FIRST })
    expect(writer(upstream, [object('services', 'a', { upstream_id: 'a', labels: SECOND })])).to.equal(
      'ingress controller 2.x (the service of the same id a is the controller’s)'.replace('’', "'")
    )
    expect(writer(upstream, [object('services', 'b', { labels: SECOND })])).to.match(/^ingress controller 1/)
    const index = createHolderIndex()
    index.replace('services', [object('services', 'a', { labels: SECOND })], 0)
    index.replace('upstreams', [upstream], 0)
    expect(index.holders().get('upstreams/a')?.owner).to.equal('ingress-controller-2')
    index.replace('services', [], 0)
    expect(index.holders().get('upstreams/a')?.owner).to.equal('ingress-controller-1')
  })
})
