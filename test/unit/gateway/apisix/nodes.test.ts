import { expect } from 'chai'
import { addressOf, nodeOf, nodesPatch, readNodes } from '../../../../agent/gateway/apisix/holders.ts'
import { createHolderIndex } from '../../../../agent/gateway/inventory/holder-index.ts'
import type { AdminObject } from '../../../../agent/gateway/apisix/admin-api.ts'

const keys = (raw: unknown) => readNodes(raw)?.nodes.map(n => n.key)

describe('nodes', () => {
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
    return index.holders().get(`upstreams/${upstream.id}`)!.owner
  }

  it('is detected from the service of the same id, in any order of listing, and detected again when that service is removed', () => {
    const upstream = object('upstreams', 'a', { nodes, labels: FIRST })
    expect(writer(upstream, [object('services', 'a', { upstream_id: 'a', labels: SECOND })])).to.equal(
      'ingress-controller-2'
    )
    expect(writer(upstream, [object('services', 'b', { labels: SECOND })])).to.equal('ingress-controller-1')
    const index = createHolderIndex()
    index.replace('services', [object('services', 'a', { labels: SECOND })], 0)
    index.replace('upstreams', [upstream], 0)
    expect(index.holders().get('upstreams/a')?.owner).to.equal('ingress-controller-2')
    index.replace('services', [], 0)
    expect(index.holders().get('upstreams/a')?.owner).to.equal('ingress-controller-1')
  })
})
