import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import { pair } from '../build/pair.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: hooks', () => {
  // Time alone releases no hook, so load cannot lead to weaker evidence.
  const test = sideBySide()

  test('two containers at once share one drain and get the same answer', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    const replies = await Promise.all([rig.drain(old), rig.hook(old)])
    for (const { body } of replies) expect(body).to.include({ result: 'drained', evidence: 'observed' })
    expect(rig.writes).to.have.length(1)
  })

  test('a second call after the drain is answered at once with the same proof', async start => {
    // A new proof would take at least a second.
    const rig = await start({ config: { DRAIN_SETTLE: '1s' } })
    const [old] = await pair(rig)
    const first = await rig.drain(old)
    expect(first.ms).to.be.at.least(1000)
    const again = await rig.hook(old)
    expect({ ...again.body, elapsedMs: first.body.elapsedMs }).to.deep.equal(first.body)
    expect(rig.writes).to.have.length(1)
  })

  test('a timeout longer than the grace changes nothing: the answer comes before the deadline', async start => {
    // The reserve is long, so that even a busy machine answers in time.
    const rig = await start({ config: { DRAIN_RESERVE: '22s' } })
    const [old] = await pair(rig, { graceSeconds: 24 })
    await rig.gateways[0]!.partition({ control: 'silent' })
    rig.end(old)
    const endsAt = Date.parse(rig.object(old)!.metadata.deletionTimestamp!) - performance.timeOrigin
    const { body, at } = await rig.hook(old, 'timeout=1h')
    expect(body).to.include({ result: 'unproved' })
    expect(at).to.be.below(endsAt)
  })

  test('a timeout shorter than the grace ends the wait of that hook, and the drain goes on', async start => {
    const rig = await start({ applyDelay: () => 1500 })
    const [old] = await pair(rig)
    const patient = rig.drain(old)
    const { body, ms, ranMs } = await rig.hook(old, 'timeout=200ms')
    expect(body).to.include({ result: 'unproved' })
    expect(ms).to.be.at.least(190)
    expect(ranMs).to.be.below(1400)
    expect((await patient).body).to.include({ result: 'drained', evidence: 'observed' })
  })

  test('a hook without a name, as in older pods, works if the pod ends, and falls back if it stays', async start => {
    const rig = await start()
    const [old, fresh] = await pair(rig)
    const unnamed = () => callHook({ port: rig.agent.port, from: old.ip })
    const stays = await unnamed()
    expect([stays.status, stays.body.result]).to.deep.equal([503, 'stays'])
    expect(stays.body.change).to.include('?namespace=…&pod=…')
    rig.end(old)
    const ends = await unnamed()
    expect([ends.status, ends.body.result]).to.deep.equal([200, 'drained'])
    expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
  })

  test('a pod whose packets come from its host is not mistaken for the one pod with that address', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    const host = rig.pod('host-agent', { hostNetwork: true })
    await rig.settled()
    rig.end(old)
    const from = { port: rig.agent.port, from: host.ip }
    const unnamed = await callHook(from)
    expect([unnamed.status, unnamed.body.error]).to.deep.equal([400, 'not-named'])
    const named = await callHook({ ...from, query: 'namespace=shop&pod=web-1' })
    expect([named.status, named.body.result]).to.deep.equal([200, 'drained'])
    expect(named.body.pod?.name).to.equal('web-1')
  })

  test('without the plugin a restart drains nothing, and its hook is held for its own sleep, in which a deletion may still show', async start => {
    const rig = await start()
    const [old, fresh] = await pair(rig)
    const { status, body, ms } = await rig.hook(old, 'sleep=3s')
    expect([status, body.result, body.evidence]).to.deep.equal([503, 'stays', 'none'])
    expect(ms).to.be.at.least(2990)
    expect(rig.agent.loop.drains().size).to.equal(0)
    expect(rig.nodes('upstreams/web')).to.deep.equal([old.node, fresh.node])
  })

  test('a slice that marks a serving pod as terminating takes it out of nothing', async start => {
    const rig = await start()
    const [old, fresh] = await pair(rig)
    rig.service('web', [old, fresh])
    rig.kubernetes.store.modify('endpointslices', 'shop', 'web-1', was => ({
      ...was,
      endpoints: was.endpoints?.map(endpoint => ({ ...endpoint, conditions: { terminating: true } }))
    }))
    const { status, body } = await rig.hook(old)
    expect([status, body.result]).to.deep.equal([503, 'stays'])
    expect(rig.agent.loop.drains().size).to.equal(0)
    expect(rig.nodes('upstreams/web')).to.have.members([old.node, fresh.node])
  })

  test('a caller that disconnects does not stop the drain, and gets its answer when it calls again', async start => {
    const rig = await start({ applyDelay: () => 500 })
    const [old] = await pair(rig)
    rig.end(old)
    const gone = new AbortController()
    const first = rig.hook(old, '', gone.signal).catch((error: Error) => error.name)
    await until('the hook is held', () => rig.agent.loop.held().length === 1)
    gone.abort()
    expect(await first).to.equal('AbortError')
    await until('the place is free', () => rig.agent.loop.held().length === 0)
    expect(rig.agent.loop.drains().size).to.equal(1)
    expect((await rig.hook(old)).body).to.include({ result: 'drained', evidence: 'observed' })
  })

  test('is refused with 503 while the watch has not synced', async start => {
    const rig = await start({ agent: false })
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    rig.upstream('web', [old, fresh])
    const undo = rig.kubernetes.faults.hang({ path: '/pods' })
    await rig.startAgent()
    const { status, body } = await rig.hook(old)
    expect([status, body.error]).to.deep.equal([503, 'cannot-vouch'])
    expect(body.why).to.contain('watch:')
    expect(rig.agent.missing().join()).to.contain('watch:pods')
    undo()
  })

  test('is refused with 503 if no gateway is known', async start => {
    const rig = await start({ agent: false, gateways: 1 })
    rig.gatewayIs(rig.gateways[0]!, 'gone')
    const agent = await rig.startAgent()
    const [old] = await pair(rig)
    await until('all but the gateway is there', () => agent.missing().length === 1)
    const { status, body } = await rig.drain(old)
    expect([status, body.error]).to.deep.equal([503, 'cannot-vouch'])
    expect(body.why).to.contain('no gateway is known')
  })

  test('a pod whose annotation disables the drain is left alone', async start => {
    const rig = await start({ barrier: true })
    const [old] = await pair(rig, { annotations: { 'apisix-drain.io/skip': 'true' } })
    const { status, body, ranMs } = await rig.drain(old)
    expect({ status, ...body }).to.include({ status: 503, result: 'stays', evidence: 'none' })
    expect(body.change).to.contain('apisix-drain.io/skip')
    expect(ranMs).to.be.below(1000)
    expect(rig.nodes('upstreams/web')).to.have.length(2)
    expect(rig.gateways[0]!.barrier?.entries.size).to.equal(0)
  })

  test('a dry run writes nothing, bars nothing, and says so at once', async start => {
    const rig = await start({ barrier: true, config: { DRAIN_DRY_RUN: 'true' } })
    const [old, fresh] = await pair(rig)
    const { status, body, ranMs } = await rig.drain(old)
    expect({ status, ...body }).to.include({ status: 503, result: 'unproved', evidence: 'none' })
    expect(body.why).to.contain('dry run')
    expect(ranMs).to.be.below(1000)
    expect(rig.writes).to.deep.equal([])
    expect(rig.gateways[0]!.barrier?.entries.all()).to.deep.equal([])
    expect(rig.nodes('upstreams/web')).to.deep.equal([old.node, fresh.node])
  })
})
