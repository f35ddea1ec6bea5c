import { expect } from 'chai'
import { lanesOf } from '../../../agent/dashboard/model/lanes.ts'
import {
  cellOf,
  columnsOf,
  lastOut,
  matrixRows,
  namespacesOf
} from '../../../agent/dashboard/model/matrix-rows.ts'
import { sceneOf } from '../../dashboard/snapshots.ts'

const NOW = 1_800_000_000_000

describe('dashboard: gateways and upstreams', () => {
  const { holders, gateways, past } = sceneOf({ now: NOW, live: 0, past: 30, holders: 600 })
  const out = lastOut(lanesOf([], past))
  const late = holders.find(({ key }) => key === 'upstreams/web-11')!

  it('has the oldest change on top, then measured lags, and every upstream', () => {
    const rows = matrixRows(holders, '')
    expect(rows).to.have.length(600)
    expect(rows.slice(0, 2).map(({ behind }) => behind!.cause)).to.deep.equal(['owner', 'owner'])
    expect(rows[2]!.behind!.cause).to.equal('gateways')
    const firstQuiet = rows.findIndex(({ behind, lags }) => behind === null && lags.length === 0)
    expect(rows.slice(firstQuiet).every(({ lags }) => lags.length === 0)).to.equal(true)
  })

  it('is filtered by the namespace of the Service', () => {
    expect(namespacesOf(holders)).to.deep.equal(['pay', 'shop'])
    const rows = matrixRows(holders, 'pay')
    expect(rows.length).to.be.within(1, 599)
    expect(rows.every(({ service }) => service?.startsWith('pay/'))).to.equal(true)
  })

  it('shows in a cell how long it is behind, its revision, and how long it took in and out', () => {
    const [first, , third] = gateways
    expect(cellOf(late, third!, out, NOW)).to.deep.equal({
      behindMs: 4000,
      revision: 4113,
      inMs: null,
      outMs: null,
      why: 'a worker has applied revision 4113, and not 4115'
    })
    expect(cellOf(late, first!, out, NOW)).to.include({ behindMs: null, revision: 4115 })
    const web1 = holders.find(({ key }) => key === 'upstreams/web-1')!
    const cell = cellOf(web1, first!, out, NOW)
    const [lane] = lanesOf([], past)
    expect(cell.inMs).to.equal(701)
    expect(cell.outMs).to.be.closeTo(lane!.drain.gateways[0]!.at! - lane!.start, 0.01)
  })

  it('has at most eight gateways, those that are behind first', () => {
    const many = Array.from({ length: 30 }, (_, i) => ({
      ...gateways[0]!,
      id: `g${i}`,
      name: `apisix-${i + 100}`
    }))
    const shown = columnsOf([...many, gateways[2]!], [late])
    expect(shown).to.have.length(8)
    expect(shown[0]!.name).to.equal('apisix-2')
  })
})
