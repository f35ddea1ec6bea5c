import { expect } from 'chai'
import { createBalancer } from '../../../../sandbox/apisix/balancer.ts'
import type { Target } from '../../../../sandbox/apisix/balancer.ts'

const target = (name: string, weight = 1, priority = 0): Target => ({
  name,
  host: name,
  port: 80,
  weight,
  priority
})

const counts = (targets: Target[], picks: number, type = 'roundrobin'): Record<string, number> => {
  const balancer = createBalancer(type, () => 0)
  const found: Record<string, number> = {}
  for (let n = 0; n < picks; n += 1) {
    const name = balancer.pick(targets, new Set(), `/${n}`)?.name ?? 'none'
    found[name] = (found[name] ?? 0) + 1
  }
  return found
}

describe('sandbox/apisix balancer', () => {
  it('shares by weight', () => {
    expect(counts([target('a', 3), target('b', 1)], 40)).to.deep.equal({ a: 30, b: 10 })
    expect(counts([target('a', 100), target('b', 100)], 40)).to.deep.equal({ a: 20, b: 20 })
  })

  it('never picks weight 0 while another node has a weight', () => {
    expect(counts([target('a', 0), target('b', 1)], 20)).to.deep.equal({ b: 20 })
  })

  it('picks weight 0 if there is nothing else', () => {
    expect(counts([target('a', 0)], 3)).to.deep.equal({ a: 3 })
    expect(counts([target('a', 0), target('b', 0)], 4)).to.deep.equal({ a: 2, b: 2 })
  })

  it('goes to another node on a retry, and does not fall to weight 0', () => {
    const [a, b, zero] = [target('a'), target('b'), target('zero', 0)]
    const balancer = createBalancer('roundrobin')
    for (let n = 0; n < 10; n += 1) {
      expect(balancer.pick([a, b], new Set([a]), '/')).to.equal(b)
      expect(balancer.pick([a, zero], new Set([a]), '/')).to.equal(a)
    }
    expect(balancer.pick([a, b], new Set([a, b]), '/')).to.equal(undefined)
  })

  it('picks a lone node again and again', () => {
    const a = target('a')
    expect(createBalancer('roundrobin').pick([a], new Set([a]), '/')).to.equal(a)
  })

  it('leaves a lower priority alone until the higher one has been tried', () => {
    const [high, low] = [target('high', 1, 1), target('low', 1, 0)]
    expect(counts([low, high], 10)).to.deep.equal({ high: 10 })
    expect(createBalancer('roundrobin').pick([low, high], new Set([high]), '/')).to.equal(low)
  })

  it('chash moves only the keys of the node that left', () => {
    const targets = ['a', 'b', 'c', 'd'].map(name => target(name))
    const balancer = createBalancer('chash')
    const keys = Array.from({ length: 400 }, (_, n) => `/path/${n}`)
    const before = keys.map(key => balancer.pick(targets, new Set(), key)?.name)
    const after = keys.map(key => balancer.pick(targets.slice(1), new Set(), key)?.name)
    const moved = keys.filter((_, n) => before[n] !== after[n])
    expect(moved.length).to.be.within(60, 140)
    expect(keys.every((_, n) => before[n] === after[n] || before[n] === 'a')).to.equal(true)
  })
})
