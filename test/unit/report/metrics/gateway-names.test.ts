import { expect } from 'chai'
import { createGatewayNames, MOST } from '../../../../agent/report/metrics/metric-registry.ts'

describe('the label gateway', () => {
  function rig() {
    const series = new Set<string>()
    const names = createGatewayNames(
      name => series.add(name),
      name => series.delete(name)
    )
    return { series, names }
  }
  const many = (from: number, count: number) => Array.from({ length: count }, (_, i) => `apisix-${from + i}`)

  it('is the name, and its series begin when the gateway is first seen', () => {
    const { series, names } = rig()
    names.keep(['apisix-1', 'apisix-2'])
    expect([...series]).to.deep.equal(['apisix-1', 'apisix-2'])
    expect(names.labelOf('apisix-1')).to.equal('apisix-1')
    expect(names.labelOf('apisix-3'), 'seen between two scrapes').to.equal('apisix-3')
  })

  it('is `other` above the bound', () => {
    const { series, names } = rig()
    names.keep(many(1, MOST + 5))
    expect(series.size).to.equal(MOST + 1)
    expect(series, 'begins with the first gateway that needs it').to.include('other')
    expect(names.labelOf(`apisix-${MOST + 1}`)).to.equal('other')
    expect(names.labelOf('apisix-1')).to.equal('apisix-1')
  })

  it('keeps the series of a gateway that is gone until a new one needs the place', () => {
    const { series, names } = rig()
    names.keep(many(1, MOST))
    names.keep(many(2, MOST - 1))
    expect(series).to.include('apisix-1')
    names.keep(many(2, MOST))
    expect(series.size).to.equal(MOST)
    expect(series).not.to.include('apisix-1')
    expect(series).to.include(`apisix-${MOST + 1}`)
  })

  it('stays bounded over any number of rollouts of the gateways', () => {
    const { series, names } = rig()
    for (let from = 1; from < 500; from += 7) {
      names.keep(many(from, 5))
      expect(series.size).to.be.at.most(MOST)
      for (const name of many(from, 5)) expect(names.labelOf(name)).to.equal(name)
    }
  })
})
