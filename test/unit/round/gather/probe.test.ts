import { expect } from 'chai'

import { systemClock } from '../../../../agent/base/clock.ts'
import { createProbe, type Probe } from '../../../../agent/round/gather/probe.ts'
import type { GatewayFact, Millis, NodeKey, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { createControlReader, type ReadGateway } from '../../../../agent/gateway/apisix/control-api.ts'
import { serveControlApi } from '../../../../sandbox/apisix/control-api.ts'
import { createStore, keyOf } from '../../../../sandbox/apisix/store.ts'
import { createWorker } from '../../../../sandbox/apisix/worker.ts'
import { silent, until } from '../../../build/apisix.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const uid = 'pod-1' as PodUid
const gateway = (id: string, ip = '127.0.0.1'): GatewayFact => ({
  id,
  name: id,
  ip,
  ready: true,
  terminating: false,
  host: undefined
})

describe('probe on a gateway', () => {
  const store = createStore()
  const workers = [0, 1].map(id => createWorker({ id, pid: id, store, applyDelay: () => 0 }))
  let next = 0
  let control: Awaited<ReturnType<typeof serveControlApi>>
  let probe: Probe

  const put = (...hosts: string[]) =>
    store.put(keyOf('upstreams', 'web'), {
      id: 'web',
      type: 'roundrobin',
      nodes: hosts.map(host => ({ host, port: 80, weight: 1 }))
    })

  before(async () => {
    control = await serveControlApi({ host: '127.0.0.1', port: 0, accept: () => workers[next++ % 2]! })
  })
  beforeEach(() => {
    put('10.0.0.1', '10.0.0.2')
    const read = createControlReader({
      port: control.listener.port,
      timeoutMs: 20_000,
      now: () => systemClock.now()
    })
    probe = createProbe({ read, clock: systemClock, log: silent })
    probe.gateways([gateway('g1')])
  })
  afterEach(async () => {
    await probe.stop()
    control.faults.clear()
    for (const worker of workers) worker.restoreWatch()
  })
  after(async () => {
    await control.close()
    for (const worker of workers) worker.kill()
    store.close()
  })
  const want = (since: Millis = systemClock.now(), ...nodes: NodeKey[]) =>
    probe.want([{ uid, nodes: nodes.length > 0 ? nodes : ['10.0.0.1'], since }])
  const seen = () => probe.observation(uid, 'g1')

  it('counts clean reads once the node is gone, and reports its holders until then', async () => {
    want()
    await until('it is seen', () => seen()?.stillListed === true)
    expect(seen()).to.deep.include({ cleanReads: 0, problem: 'still lists 10.0.0.1 in upstreams/web' })
    const before = systemClock.now()
    put('10.0.0.2')
    await until('clean reads', () => (seen()?.cleanReads ?? 0) >= 5)
    expect(seen()).to.deep.include({ stillListed: false, problem: '' })
    expect(seen()?.firstCleanAt).to.be.within(before, systemClock.now())
  })

  it('is not misled by one up-to-date worker while another is behind', async () => {
    workers[1]?.loseWatch()
    put('10.0.0.2')
    want()
    let most = 0
    const end = probe.onChange(() => (most = Math.max(most, seen()?.cleanReads ?? 0)))
    let reads = 0
    probe.onChange(() => reads++)
    await until('many reads', () => reads >= 40)
    end()
    expect(seen()?.cleanReads).to.be.below(5)
    expect(most).to.be.below(20)
    workers[1]?.restoreWatch()
    await until('clean reads', () => (seen()?.cleanReads ?? 0) >= 20)
  })

  it('restarts from 0 when the node is put back', async () => {
    put('10.0.0.2')
    want()
    await until('clean reads', () => (seen()?.cleanReads ?? 0) >= 3)
    put('10.0.0.1', '10.0.0.2')
    await until('it is seen', () => seen()?.cleanReads === 0 && seen()?.stillListed === true)
    expect(seen()?.firstCleanAt).to.equal(undefined)
  })

  it('counts no read that began too early, and restarts if the start time changes', async () => {
    put('10.0.0.2')
    want(systemClock.now() + 60_000)
    let told = 0
    probe.onChange(() => told++)
    await until('some reads', () => told > 3)
    expect(seen()?.cleanReads).to.equal(0)
    want(systemClock.now())
    await until('clean reads', () => (seen()?.cleanReads ?? 0) > 0)
    want(systemClock.now() + 60_000)
    expect(seen()?.cleanReads).to.equal(0)
  })

  it('distinguishes ports of one host', async () => {
    want(systemClock.now(), '10.0.0.1:81', '10.0.0.1:82')
    await until('clean reads', () => (seen()?.cleanReads ?? 0) >= 3)
    want(systemClock.now(), '10.0.0.1:81', '10.0.0.1:80')
    await until('it is seen', () => seen()?.stillListed === true)
  })

  it('reports why a read failed, and continues when the gateway is back', async () => {
    put('10.0.0.2')
    const lift = control.faults.inject({ fault: { kind: 'status', status: 500 }, path: '/v1/routes' })
    want()
    await until('the problem', () => seen()?.problem.includes('500') === true)
    expect(seen()?.cleanReads).to.equal(0)
    lift()
    await until('clean reads', () => (seen()?.cleanReads ?? 0) >= 3)
    expect(seen()?.problem).to.equal('')
  })
})

describe('probe on several gateways', () => {
  const clean = () => Promise.resolve({ beganAt: systemClock.now(), holders: new Map() })
  let probe: Probe
  afterEach(() => probe.stop())
  const begin = (read: ReadGateway, ...ips: string[]) => {
    probe = createProbe({ read, clock: systemClock, log: silent })
    probe.want([{ uid, nodes: ['10.0.0.1'], since: 0 }])
    probe.gateways(ips.map(ip => gateway(ip, ip)))
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
    await until('the good one is read', () => reads('good') >= 5, 1000)
    expect(probe.observation(uid, 'dead')).to.deep.include({ cleanReads: 0, problem: 'refused' })
    expect(probe.observation(uid, 'hangs')).to.deep.include({ cleanReads: 0, firstCleanAt: undefined })
  })

  it('reads nothing when nothing is wanted', async () => {
    let asked = 0
    begin(() => (asked++, clean()), 'good')
    await until('reads', () => asked > 6)
    probe.want([])
    expect(probe.observation(uid, 'good')).to.equal(undefined)
    const then = asked
    await new Promise(resolve => setTimeout(resolve, 100))
    expect(asked).to.equal(then)
  })

  it('polls a dead gateway less and less often', async () => {
    let asked = 0
    begin(() => (asked++, Promise.reject(new Error('refused'))), 'dead')
    await new Promise(resolve => setTimeout(resolve, 400))
    expect(asked).to.be.within(2, 10)
  })

  it('reports the age of its last read of each gateway', async () => {
    let fails = false
    begin(async () => {
      if (fails) throw new Error('refused')
      return clean()
    }, 'one')
    await until('a read', () => probe.freshness('one')?.problem === '')
    const { lastSuccessAt } = probe.freshness('one')!
    expect(lastSuccessAt).to.be.a('number')
    fails = true
    await until('a failure', () => probe.freshness('one')?.problem === 'refused')
    expect(probe.freshness('one')?.lastSuccessAt).to.be.at.least(lastSuccessAt!)
    expect(probe.freshness('nobody')).to.equal(undefined)
  })

  it('never has more than two reads of one gateway in progress', async () => {
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
    expect(most).to.equal(2)
  })

  it('forgets a removed gateway, and starts over if a gateway’s address changes', async () => {
    begin(clean, 'a', 'b')
    await until('reads', () => reads('a') > 0 && reads('b') > 0)
    probe.gateways([gateway('b', 'elsewhere')])
    expect([probe.observation(uid, 'a'), reads('b')]).to.deep.equal([undefined, 0])
    await until('reads', () => reads('b') > 0)
  })

  it('does not count a clean read that overlaps a read with the node', async () => {
    const answers: ((lists: boolean) => void)[] = []
    begin(async () => {
      const beganAt = systemClock.now()
      const lists = await new Promise<boolean>(resolve => answers.push(resolve))
      return { beganAt, holders: new Map(lists ? [['upstreams/web', ['10.0.0.1:80']]] : []) }
    }, 'one')
    await until('two under way', () => answers.length === 2)
    answers[0]?.(true)
    await until('it was seen', () => probe.observation(uid, 'one')?.stillListed === true)
    answers[1]?.(false)
    await until('further reads', () => answers.length >= 4)
    expect(probe.observation(uid, 'one')).to.deep.include({ cleanReads: 0, stillListed: true })
    for (const answer of answers) answer(false)
    await until('clean', () => reads('one') > 0)
    await stopAnswering(answers)
  })

  const stopAnswering = async (answers: ((lists: boolean) => void)[]) => {
    probe.want([])
    const end = probe.stop()
    for (let i = 0; i < 5; i++) {
      for (const answer of answers) answer(false)
      await new Promise(resolve => setImmediate(resolve))
    }
    await end
  }
})

const turns = async () => {
  for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve))
}

describe('probe without a drain', () => {
  function rig() {
    const clock = manualClock()
    let reads = 0
    const failing = { isOn: false }
    const probe = createProbe({
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
    return { probe, advance, failing, reads: () => reads }
  }

  it('reads each gateway at once, and then every 15 s', async () => {
    const { probe, advance, reads } = rig()
    probe.gateways([gateway('g')])
    await turns()
    expect(probe.sighting('g')?.holders.get('upstreams/web')).to.deep.equal(['10.0.0.1:80'])
    await advance(14_000)
    expect(reads()).to.equal(1)
    await advance(2000)
    expect(reads()).to.equal(2)
    await probe.stop()
  })

  it('has failed only until a read succeeds, which comes without a drain too (E6)', async () => {
    const { probe, advance, failing } = rig()
    failing.isOn = true
    probe.gateways([gateway('g')])
    await turns()
    expect(probe.freshness('g')?.problem).to.equal('timeout')
    failing.isOn = false
    await advance(16_000)
    expect(probe.freshness('g')?.problem).to.equal('')
    await probe.stop()
  })

  it('reads every second while a drain waits', async () => {
    const { probe, advance, reads } = rig()
    probe.gateways([gateway('g')])
    await turns()
    probe.hurry()
    await advance(4000)
    expect(reads()).to.be.above(3)
    await advance(20_000)
    expect(reads()).to.be.below(10)
    await probe.stop()
  })

  it('begins at once when a drain wants evidence, and forgets a removed gateway', async () => {
    const { probe, advance, reads } = rig()
    probe.gateways([gateway('g')])
    await advance(5000)
    probe.want([{ uid, nodes: ['10.0.0.1'], since: 0 }])
    await turns()
    expect(probe.sighting('g')?.holders.get('upstreams/web')).to.deep.equal(['10.0.0.3:80'])
    probe.want([])
    await advance(12_000)
    expect(reads()).to.equal(3)
    probe.gateways([])
    expect(probe.sighting('g')).to.equal(undefined)
    await probe.stop()
  })
})
