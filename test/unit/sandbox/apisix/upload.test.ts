import { request } from 'node:http'
import { once } from 'node:events'
import { expect } from 'chai'
import { eventually, httpNode, opened, testGateway, type TestGateway, type TestNode } from './fixture.ts'

/** A node is picked when the head has come, and connected to when the body has: nginx buffers requests. */
describe('sandbox/apisix slow uploads', () => {
  const all = opened()
  let apisix: TestGateway
  let old: TestNode
  let other: TestNode

  beforeEach(async () => {
    apisix = all.add(await testGateway({ workers: 1 }))
    old = all.add(await httpNode())
    other = all.add(await httpNode())
    await apisix.route({ [old.address]: 1, [other.address]: 1 })
  })
  afterEach(() => all.close())

  /** Two uploads, so that each node has been picked by one; `meanwhile` runs between their heads and their bodies' ends. */
  const upload = async (meanwhile: () => Promise<void>): Promise<string[]> => {
    const answers: Promise<string>[] = []
    const uploads = [0, 1].map(() => {
      const outgoing = request(`${apisix.gateway.urls.proxy}/upload`, { method: 'POST', agent: false })
      answers.push(
        once(outgoing, 'response').then(async ([response]) => {
          let body = ''
          for await (const chunk of response as AsyncIterable<Buffer>) body += chunk.toString()
          return body
        })
      )
      outgoing.write('the beginning')
      return outgoing
    })
    const picked = (): number =>
      [old, other].reduce(
        (sum, { port }) => sum + (apisix.gateway.barrier?.inflight.of('127.0.0.1', port).requests ?? 0),
        0
      )
    await eventually(() => picked() === 2, 'both heads')
    await meanwhile()
    for (const outgoing of uploads) outgoing.end('the end')
    return Promise.all(answers)
  }

  it('land on the node that was removed meanwhile', async () => {
    const answers = await upload(async () => {
      await apisix.admin('PATCH', 'upstreams/u', { nodes: { [old.address]: null } })
      await eventually(() => apisix.gateway.workers[0]?.config.revision === apisix.store.revision)
    })
    expect(answers.sort()).to.deep.equal([old.address, other.address].sort())
  })

  for (const state of ['draining', 'sealed'])
    it(`move away from a node that is ${state} meanwhile`, async () => {
      const answers = await upload(async () => {
        await apisix.barrier('PUT', 'entries', {
          entries: [{ uid: 'pod', ip: '127.0.0.1', port: old.port, state, ttl: 60 }]
        })
      })
      expect(answers).to.deep.equal([other.address, other.address])
      expect(old.seen).to.deep.equal([])
      expect(apisix.gateway.barrier?.counts.moved).to.equal(1)
      await eventually(() => apisix.facts.length === 2)
      expect(apisix.facts.filter(({ moved }) => moved).length).to.equal(1)
      expect(apisix.gateway.barrier?.inflight.of('127.0.0.1', undefined)).to.deep.equal({
        requests: 0,
        long: 0
      })
    })
})
