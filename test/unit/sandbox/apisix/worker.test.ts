import { Agent } from 'node:http'
import { expect } from 'chai'
import { createStore, type Store } from '../../../../sandbox/apisix/store.ts'
import { createWorker, type Worker } from '../../../../sandbox/apisix/worker.ts'
import { eventually, httpNode, opened, send, testGateway } from './fixture.ts'

describe('sandbox/apisix worker', () => {
  let store: Store
  let worker: Worker

  const start = (applyDelay = () => 0): void => {
    store = createStore()
    worker = createWorker({ id: 0, pid: 1, store, applyDelay })
  }
  afterEach(() => {
    worker.kill()
    store.close()
  })
  const put = (nodes: Record<string, number>): void => {
    store.put('/apisix/upstreams/u', { nodes })
  }
  const known = (): unknown => worker.config.get('upstreams', 'u')?.value['nodes']

  it('applies writes after its own delay, in order', async () => {
    const delays = [40, 5]
    start(() => delays.shift() ?? 0)
    put({ a: 1 })
    store.put('/apisix/upstreams/later', { nodes: {} })
    const later = (): boolean => worker.config.get('upstreams', 'later') !== undefined
    expect([known(), later()]).to.deep.equal([undefined, false])
    await eventually(later)
    expect(known(), 'the earlier write, when the later one is there').to.deep.equal({ a: 1 })
  })

  it('stays stale while its watch is dead, and rereads everything with the next watch', () => {
    start()
    put({ a: 1 })
    store.put('/apisix/upstreams/gone', { nodes: {} })
    worker.loseWatch()
    put({ b: 1 })
    store.delete('/apisix/upstreams/gone')
    expect([known(), worker.config.revision]).to.deep.equal([{ a: 1 }, 2])
    worker.restoreWatch()
    expect([known(), worker.config.revision]).to.deep.equal([{ b: 1 }, 4])
    expect(worker.config.get('upstreams', 'gone')).to.equal(undefined)
  })

  it('on thaw, handles queued requests first, and only then applies missed writes', () => {
    start()
    put({ a: 1 })
    worker.freeze()
    put({ b: 1 })
    const seen: unknown[] = []
    worker.run(() => seen.push(known()))
    expect(seen).to.deep.equal([])
    worker.thaw()
    expect([seen, known()]).to.deep.equal([[{ a: 1 }], { b: 1 }])
  })
})

describe('sandbox/apisix frozen worker', () => {
  const all = opened()
  afterEach(() => all.close())

  for (const [name, barrier] of [
    ['sends its queued requests to the node that was removed meanwhile', false],
    ['sends none of them to a node the barrier denies', true]
  ] as const)
    it(name, async () => {
      const apisix = all.add(await testGateway({ workers: 1 }))
      const [old, other] = [all.add(await httpNode()), all.add(await httpNode())]
      await apisix.route({ [old.address]: 1, [other.address]: 1 })
      const agent = new Agent({ keepAlive: true })
      const [worker] = apisix.gateway.workers
      worker?.freeze()
      const queued = Array.from({ length: 10 }, () => send(`${apisix.gateway.urls.proxy}/x`, { agent }))
      if (barrier) {
        apisix.gateway.barrier?.entries.put({
          uid: 'pod',
          ip: '127.0.0.1',
          port: old.port,
          state: 'draining',
          ttl: 60
        })
      } else {
        const { status } = await apisix.admin('PATCH', 'upstreams/u', { nodes: { [old.address]: null } })
        expect(status, 'the write is answered all the same').to.equal(200)
      }
      await eventually(() => worker?.queued === 10, 'ten queued requests')
      expect([old.seen.length, other.seen.length]).to.deep.equal([0, 0])
      worker?.thaw()
      const bodies = (await Promise.all(queued)).map(({ body }) => body)
      agent.destroy()
      expect(bodies.filter(body => body === old.address).length).to.equal(barrier ? 0 : 5)
      expect(bodies.length).to.equal(10)
    })

  it('does not answer on its open connections, while new ones go to other workers', async () => {
    const apisix = all.add(await testGateway({ workers: 2 }))
    const url = `${apisix.gateway.urls.control}/v1/upstreams`
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    expect((await send(url, { agent })).body).to.equal('{}\n')
    for (const worker of apisix.gateway.workers) worker.freeze()
    let answered = false
    const held = send(url, { agent }).finally(() => (answered = true))
    const owner = () => apisix.gateway.workers.find(worker => worker.queued === 1)
    await eventually(() => owner() !== undefined)
    const frozen = owner()
    for (const worker of apisix.gateway.workers) if (worker !== frozen) worker.thaw()
    for (let n = 0; n < 10; n += 1) expect((await send(url)).status).to.equal(200)
    expect(answered).to.equal(false)
    frozen?.thaw()
    expect((await held).status).to.equal(200)
    agent.destroy()
  })

  it('shows in the Control API the state of the worker that holds the connection', async () => {
    const apisix = all.add(await testGateway({ workers: 2 }))
    await apisix.route({ '127.0.0.1:1': 1 })
    apisix.gateway.workers[1]?.loseWatch()
    await apisix.admin('PATCH', 'upstreams/u', { nodes: { '127.0.0.1:1': null } })
    const read = async (agent?: Agent): Promise<number> => {
      const { body } = await send(`${apisix.gateway.urls.control}/v1/upstream/u`, agent ? { agent } : {})
      return (JSON.parse(body) as { modifiedIndex: number }).modifiedIndex
    }
    const fresh = new Set<number>()
    for (let n = 0; n < 60; n += 1) fresh.add(await read())
    expect([...fresh].sort((a, b) => a - b)).to.deep.equal([1, 3])
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const kept = new Set<number>()
    for (let n = 0; n < 10; n += 1) kept.add(await read(agent))
    agent.destroy()
    expect(kept.size, 'a connection stays with its worker').to.equal(1)
  })
})
