import { expect } from 'chai'

import {
  arrivalOf,
  type ArrivalEvidence,
  type GatewayKnowledge
} from '../../../../agent/rules/members/arrivals.ts'

const WEB = 'upstreams/web'
const holder = (differs = {}) => ({ key: WEB, listedAt: 1000, revision: 50, ...differs })
const gateway = (name: string, differs: Partial<GatewayKnowledge> = {}): GatewayKnowledge => ({
  name,
  toldAt: 1100,
  workers: [{ revision: 50, appliedAt: 1010 }],
  observedAt: () => undefined,
  ...differs
})
const arrival = (differs: Partial<ArrivalEvidence> = {}) =>
  arrivalOf({ holders: [holder()], gateways: [gateway('apisix-0')], ...differs })

describe('plan: arrivals', () => {
  it('dates the arrival by the gateway’s answer if a worker gives no time of its own', () => {
    const silent = gateway('apisix-0', { workers: [{ revision: 50, appliedAt: undefined }] })
    expect(arrival({ gateways: [silent] }).at).to.equal(1100)
  })

  it('counts as arrived when the last worker of the last gateway has applied the holder', () => {
    const second = gateway('apisix-1', {
      workers: [
        { revision: 51, appliedAt: 1012 },
        { revision: 50, appliedAt: 1040 }
      ]
    })
    const { at, holders, gateways, why } = arrival({ gateways: [gateway('apisix-0'), second] })
    expect(at).to.equal(1040)
    expect(holders).to.deep.equal([{ key: WEB, at: 1040 }])
    expect(gateways.map(({ at, evidence }) => [at, evidence])).to.deep.equal([
      [1010, 'barrier'],
      [1040, 'barrier']
    ])
    expect(why).to.equal('')
  })

  it('does not count as arrived while one worker is behind, and reports that worker’s revision', () => {
    const workers = [{ revision: 49, appliedAt: 900 }]
    const { at, why } = arrival({ gateways: [gateway('apisix-0'), gateway('apisix-1', { workers })] })
    expect(at).to.equal(undefined)
    expect(why).to.equal('apisix-1: a worker has applied revision 49, upstreams/web lists it since 50')
  })

  it('does not count as arrived while a worker is behind in that kind of object, however far it is in another', () => {
    const at = (revisions: Record<string, number>) =>
      arrival({
        gateways: [gateway('apisix-0', { workers: [{ revision: 60, revisions, appliedAt: 1010 }] })]
      })
    expect(at({ routes: 60, upstreams: 49 }).why).to.match(/has applied revision 49/)
    expect(at({ routes: 60, upstreams: 0 }).why, 'it has not said yet').to.match(/has applied revision 0/)
    expect(at({ routes: 60, upstreams: 50 }).at).to.equal(1010)
  })

  it('ignores a gateway’s time that is later than the answer containing it', () => {
    const workers = [{ revision: 50, appliedAt: 99_000 }]
    expect(arrival({ gateways: [gateway('apisix-0', { workers })] }).at).to.equal(1100)
  })

  it('uses the Control API if no worker reports', () => {
    const silent = { toldAt: undefined, workers: [] }
    const waiting = arrival({ gateways: [gateway('apisix-0', silent)] })
    expect([waiting.at, waiting.why]).to.deep.equal([
      undefined,
      'apisix-0: not seen to list it in upstreams/web yet'
    ])
    const { at, gateways } = arrival({
      gateways: [gateway('apisix-0', { ...silent, observedAt: () => 1070 })]
    })
    expect([at, gateways[0]?.evidence]).to.deep.equal([1070, 'observed'])
  })

  it('waits for every holder', () => {
    const late = holder({ key: 'routes/r1/upstream', listedAt: undefined, revision: undefined })
    const { at, holders, why } = arrival({ holders: [holder(), late] })
    expect(at).to.equal(undefined)
    expect(holders.map(({ at }) => at)).to.deep.equal([1010, undefined])
    expect(why).to.equal('apisix-0: routes/r1/upstream does not list it yet')
  })

  it('reports nothing about an endpoint that no holder lists, or if no gateway is known', () => {
    expect(arrival({ holders: [] })).to.include({ at: undefined, why: 'no holder is known to list it' })
    expect(arrival({ gateways: [] })).to.include({ at: undefined, why: 'no gateway is known' })
  })
})
