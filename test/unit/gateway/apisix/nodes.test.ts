import { expect } from 'chai'
import {
  addressOf,
  nodeOf,
  nodesPatch,
  readNodes,
  writerOf
} from '../../../../agent/gateway/apisix/holders.ts'
import { createHolderIndex } from '../../../../agent/gateway/inventory/holder-index.ts'
import type { AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'

const keys = (raw: unknown) => readNodes(raw)?.nodes.map(n => n.key)

describe('nodes', () => {
  it('reads a map: ports, IPv6, no port, domains', () => {
    expect(
      keys({ '10.0.0.7:8080': 1, '[fd00::7]:8080': 2, '10.0.0.8': 1, '[fd00::8]': 1, 'shop.local:80': 1 })
    ).to.deep.equal(['10.0.0.7:8080', '[fd00::7]:8080', '10.0.0.8', '[fd00::8]', 'shop.local:80'])
  })

  it('reads an array the same way', () => {
    const read = readNodes([
      { host: '10.0.0.7', port: 8080, weight: 100 },
      { host: '[FD00:0::7]', port: 8080, weight: 0, priority: -1 },
      { host: '10.0.0.8', weight: 1 }
    ])
    expect(read?.form).to.equal('array')
    expect(read?.nodes.map(n => [n.key, n.host, n.port, n.weight])).to.deep.equal([
      ['10.0.0.7:8080', '10.0.0.7', 8080, 100],
      ['[fd00::7]:8080', 'fd00::7', 8080, 0],
      ['10.0.0.8', '10.0.0.8', undefined, 1]
    ])
  })

  it('normalises every spelling of an IPv6 address to the one that Kubernetes uses', () => {
    expect(keys({ '[fd00:0:0:0::7]:80': 1, 'FD00::0007': 1 })).to.deep.equal(['[fd00::7]:80', '[fd00::7]'])
    expect(addressOf('[fd00::7]:80')).to.deep.equal({ host: 'fd00::7', port: 80 })
  })

  it('distinguishes an empty map, an empty array and no nodes', () => {
    expect(readNodes({})).to.deep.equal({ form: 'map', nodes: [] })
    expect(readNodes([])).to.deep.equal({ form: 'array', nodes: [] })
    for (const raw of [undefined, null, 'x', 7]) expect(readNodes(raw)).to.equal(undefined)
  })

  it('never sends the empty object, which would wipe the map, and never removes all nodes', () => {
    const all = new Set(['10.0.0.7:80'])
    for (const raw of [{ '10.0.0.7:80': 1 }, [{ host: '10.0.0.7', port: 80, weight: 1 }], {}, []])
      expect(() => nodesPatch(raw, { remove: all, add: [] })).to.throw(RangeError)
  })

  it('puts a node back in the holder’s form, with the settings of its sibling', () => {
    const array = [{ host: '10.0.0.8', port: 80, weight: 5, priority: 3, metadata: { its: 'own' } }]
    const sibling = readNodes(array)!.nodes[0]!
    expect(
      nodesPatch(array, { remove: new Set(), add: [nodeOf('10.0.0.9:80', sibling, 'array')] })
    ).to.deep.equal([array[0], { host: '10.0.0.9', port: 80, weight: 5, priority: 3 }])
    expect(nodesPatch({}, { remove: new Set(), add: [nodeOf('[fd00::9]', sibling, 'map')] })).to.deep.equal({
      '[fd00::9]': 5
    })
  })

  it('writes an IPv6 host into an array in brackets, because APISIX refuses it without them', () => {
    const sibling = readNodes([{ host: '[fd00::8]', port: 80, weight: 1 }])!.nodes[0]!
    expect(nodeOf('[fd00::9]:80', sibling, 'array').raw).to.deep.equal({
      host: '[fd00::9]',
      port: 80,
      weight: 1
    })
  })
})

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
