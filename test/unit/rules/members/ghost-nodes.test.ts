import { expect } from 'chai'
import { holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import { ghostsIn, type AddressesKnown } from '../../../../agent/rules/members/behind.ts'

const NOW = 1_000_000
const AFTER_MS = 600_000

const holder = (nodes: Record<string, number>) => {
  const [found] = holdersOf({ resource: 'upstreams', id: 'web', value: { nodes }, revision: 1 })
  return found!
}
const web = holder({ '10.0.0.1:80': 1, '10.0.0.2:80': 1, '10.0.0.3:80': 1 })

const known = (differs: Partial<AddressesKnown> = {}): AddressesKnown => ({
  isTaken: host => host === '10.0.0.1',
  endedAt: () => undefined,
  isPodRange: () => false,
  freeSince: () => undefined,
  ...differs
})
const names = (of: AddressesKnown) => ghostsIn(web, of, NOW, AFTER_MS).map(({ node }) => node.key)

describe('ghosts', () => {
  it('are not nodes that may be machines: no pod was seen to end there, and no pod range is known', () => {
    expect(names(known())).to.deep.equal([])
    expect(names(known({ freeSince: () => 0 }))).to.deep.equal([])
  })

  it('are none if APISIX finds the nodes by discovery', () => {
    const discovered = { ...web, discovery: { type: 'kubernetes', service: 'shop/web:http' } }
    expect(ghostsIn(discovered, known({ endedAt: () => 0 }), NOW, AFTER_MS)).to.deep.equal([])
  })

  it('are nodes whose pod was seen to end, unless another pod has the address by now', () => {
    expect(names(known({ endedAt: () => NOW - 1 }))).to.deep.equal(['10.0.0.2:80', '10.0.0.3:80'])
  })

  it('are nodes in a pod range whose address no pod has had for long enough', () => {
    const freeSince = (host: string) => NOW - (host === '10.0.0.2' ? AFTER_MS : AFTER_MS - 1)
    expect(names(known({ isPodRange: () => true, freeSince }))).to.deep.equal(['10.0.0.2:80'])
    expect(names(known({ isPodRange: () => true }))).to.deep.equal([])
  })
})
