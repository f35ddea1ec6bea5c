import { expect } from 'chai'

import { systemClock } from '../../../../agent/base/clock.ts'
import { createControlReads } from '../../../../agent/gateway/barrier/control-lane.ts'
import { createGateways, type Gateways } from '../../../../agent/gateway/barrier/gateways.ts'
import type { GatewayFact, Millis, NodeKey, PodUid } from '../../../../agent/rules/drain/facts.ts'
import type { ReadGateway } from '../../../../agent/gateway/apisix/control-api.ts'
import { silent, until } from '../../../build/apisix.ts'
import { GATEWAY } from '../../../build/gateway.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const uid = 'pod-1' as PodUid
const gateway = (id: string, ip = '127.0.0.1'): GatewayFact => ({ ...GATEWAY, id, name: id, ip })

describe('reads of one gateway', () => {
  function rig(from: Millis = 0) {
    const reads = createControlReads()
    const want = (since: Millis, ...nodes: NodeKey[]) =>
      reads.want([{ uid, nodes: nodes.length > 0 ? nodes : ['10.0.0.1'], since }])
    const seen = (beganAt: Millis, endedAt: Millis, ...listed: NodeKey[]) =>
      reads.seen({ beganAt, holders: new Map([['upstreams/web', listed]]) }, endedAt)
    want(from)
    const read = (...all: Parameters<typeof seen>) => (seen(...all), reads.get(uid))
    return { reads, want, seen, read }
  }
  const LISTED = { cleanReads: 0, firstCleanAt: undefined, stillListed: true }

  it('are clean once the node is gone, name its holder until then, and begin anew when it is put back', () => {
    const { read } = rig()
    const problem = 'still lists 10.0.0.1 in upstreams/web'
    expect(read(1, 2, '10.0.0.1:80')).to.deep.equal({ ...LISTED, problem })
    const clean = { firstCleanAt: 4, stillListed: false, problem: '' }
    expect(read(3, 4, '10.0.0.2:80')).to.deep.equal({ ...clean, cleanReads: 1 })
    expect(read(5, 6)).to.deep.equal({ ...clean, cleanReads: 2 })
    expect(read(7, 8, '10.0.0.1:80')).to.deep.include(LISTED)
  })

  it('do not count if they began too early', () => {
    const { read, want, reads } = rig(10)
    expect(read(9, 12)?.cleanReads).to.equal(0)
    read(10, 13, '10.0.0.1:80')
    expect(read(13, 15)?.cleanReads).to.equal(1)
    want(10)
    expect(reads.get(uid)?.cleanReads).to.equal(1)
    want(20)
    expect(reads.get(uid)?.cleanReads).to.equal(0)
  })

  it('distinguish ports of one host', () => {
    const { read, want } = rig()
    want(0, '10.0.0.1:81', '10.0.0.1:82')
    expect(read(1, 2, '10.0.0.1:80')?.cleanReads).to.equal(1)
    want(0, '10.0.0.1:81', '10.0.0.1:80')
    expect(read(3, 4, '10.0.0.1:80')).to.deep.include(LISTED)
  })

  it('tell why one failed until one succeeds', () => {
    const { reads, seen } = rig()
    seen(9, 10)
    reads.failed('500')
    expect(reads.get(uid)).to.include({ cleanReads: 1, problem: '500' })
    seen(11, 12)
    expect(reads.get(uid)).to.include({ cleanReads: 2, problem: '' })
    reads.want([])
    expect(reads.get(uid)).to.equal(undefined)
  })
})

describe('probe on several gateways', () => {
  const clean = () => Promise.resolve({ beganAt: systemClock.now(), holders: new Map() })
  let gateways: Gateways
  let probe: NonNullable<Gateways['probe']>
  afterEach(() => gateways.stop())
  const begin = (read: ReadGateway, ...ips: string[]) => {
    gateways = createGateways({ read, clock: systemClock, log: silent })
    probe = gateways.probe!
    list(...ips.map(ip => gateway(ip, ip)))
  }
  const list = (...all: GatewayFact[]) => {
    gateways.list(all)
    probe.want([{ uid, nodes: ['10.0.0.1'], since: 0 }])
  }
  const reads = (id: string) => probe.observation(uid, id)?.cleanReads ?? 0

  it('is delayed by none of them', async () => {
    begin(
      (ip, signal) => {
        if (ip === 'good') return clean()
        if (ip === 'dead') return Promise.reject(new Error('refused'))
        return new Promise((_, reject) =>
          signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
        )
      },
      'good',
      'dead',
      'hangs'
    )
    await until('the good one is read', () => reads('good') >= 5)
    expect(probe.observation(uid, 'dead')).to.deep.include({ cleanReads: 0, problem: 'refused' })
    expect(probe.observation(uid, 'hangs')).to.deep.include({ cleanReads: 0, firstCleanAt: undefined })
  })

  it('never has more than one read of one gateway in progress', async () => {
    let underWay = 0
    let most = 0
    begin(async () => {
      most = Math.max(most, ++underWay)
      await new Promise(resolve => setTimeout(resolve, 5))
      underWay--
      return clean()
    }, 'one')
    for (let i = 0; i < 10; i++) probe.want([{ uid, nodes: ['10.0.0.1'], since: i }])
    await until('reads', () => reads('one') > 5)
    expect(most).to.equal(1)
  })

  it('forgets a removed gateway, and starts over if a gateway’s address changes', async () => {
    begin(clean, 'a', 'b')
    await until('reads', () => reads('a') > 0 && reads('b') > 0)
    list(gateway('b', 'elsewhere'))
    expect([probe.observation(uid, 'a'), reads('b')]).to.deep.equal([undefined, 0])
    await until('reads', () => reads('b') > 0)
  })
})

const turns = async () => {
  for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve))
}

describe('probe without a drain', () => {
  function rig() {
    const clock = manualClock()
    let reads = 0
    const failing = { isOn: false }
    const gateways = createGateways({
      clock,
      log: silent,
      read: async () => {
        reads += 1
        if (failing.isOn) throw new Error('timeout')
        return { beganAt: clock.now(), holders: new Map([['upstreams/web', [`10.0.0.${reads}:80`]]]) }
      }
    })
    const advance = async (ms: number) => {
      for (let left = ms; left > 0; left -= 1000) {
        clock.advance(1000)
        await turns()
      }
    }
    return { gateways, probe: gateways.probe!, advance, failing, reads: () => reads }
  }

  it('reads each gateway at once, and then every 15 s', async () => {
    const { gateways, probe, advance, reads } = rig()
    gateways.list([gateway('g')])
    await turns()
    expect(probe.sighting('g')?.holders.get('upstreams/web')).to.deep.equal(['10.0.0.1:80'])
    await advance(14_000)
    expect(reads()).to.equal(1)
    await advance(2000)
    expect(reads()).to.equal(2)
    await gateways.stop()
  })

  it('has failed only until a read succeeds, which comes without a drain too (E6)', async () => {
    const { gateways, probe, advance, failing } = rig()
    failing.isOn = true
    gateways.list([gateway('g')])
    await turns()
    expect(probe.freshness('g')?.problem).to.equal('timeout')
    failing.isOn = false
    await advance(16_000)
    expect(probe.freshness('g')?.problem).to.equal('')
    const lastSuccessAt = probe.freshness('g')?.lastSuccessAt
    expect(lastSuccessAt).to.be.a('number')
    failing.isOn = true
    await advance(16_000)
    expect(probe.freshness('g')).to.include({ problem: 'timeout', lastSuccessAt })
    await gateways.stop()
  })

  it('reads a dead gateway less and less often, also while a drain wants evidence', async () => {
    const { gateways, probe, advance, failing, reads } = rig()
    failing.isOn = true
    gateways.list([gateway('g')])
    probe.want([{ uid, nodes: ['10.0.0.1'], since: 0 }])
    await advance(60_000)
    const often = reads()
    await advance(60_000)
    expect(often).to.be.within(10, 45)
    expect(reads() - often).to.be.below(often)
    expect(probe.freshness('g')).to.include({ problem: 'timeout', lastSuccessAt: undefined })
    failing.isOn = false
    await advance(6000)
    const back = reads()
    await advance(10_000)
    expect(reads() - back, 'often again once it answers').to.be.above(5)
    await gateways.stop()
  })

  it('reads every second while a drain waits', async () => {
    const { gateways, probe, advance, reads } = rig()
    gateways.list([gateway('g')])
    await turns()
    probe.hurry()
    await advance(4000)
    expect(reads()).to.be.above(3)
    await advance(20_000)
    expect(reads()).to.be.below(10)
    await gateways.stop()
  })

  it('begins at once when a drain wants evidence, and forgets a removed gateway', async () => {
    const { gateways, probe, advance, reads } = rig()
    gateways.list([gateway('g')])
    await advance(5000)
    probe.want([{ uid, nodes: ['10.0.0.1'], since: 0 }])
    await turns()
    expect(probe.sighting('g')?.holders.get('upstreams/web')).to.deep.equal(['10.0.0.2:80'])
    probe.want([])
    await advance(12_000)
    expect(reads()).to.equal(2)
    gateways.list([])
    expect(probe.sighting('g')).to.equal(undefined)
    await gateways.stop()
  })
})
