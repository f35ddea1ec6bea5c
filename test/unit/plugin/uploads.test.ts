import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { expect } from 'chai'
import { httpNode, opened, testGateway, type TestGateway, type TestNode } from '../sandbox/apisix/fixture.ts'
import { until } from '../../build/apisix.ts'

interface Reply {
  readonly status: number
  readonly body: string
}

/** nginx buffers requests: it picks a node when the head has arrived, and connects when the body has arrived. */
describe('slow uploads, in the VM', () => {
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

  /** Sends uploads whose nodes are chosen in sequence. `meanwhile` runs before their bodies end. Returns the replies. */
  const upload = async (count: number, meanwhile: () => Promise<void>): Promise<Reply[]> => {
    const answers: Promise<Reply>[] = []
    const uploads: ClientRequest[] = []
    for (let n = 0; n < count; n += 1) {
      const outgoing = request(`${apisix.gateway.urls.proxy}/upload`, {
        method: 'POST',
        agent: false,
        headers: { expect: '100-continue' }
      })
      answers.push(
        once(outgoing, 'response').then(async ([response]) => {
          let body = ''
          for await (const chunk of response as AsyncIterable<Buffer>) body += chunk.toString()
          return { status: (response as IncomingMessage).statusCode ?? 0, body }
        })
      )
      outgoing.flushHeaders()
      // The gateway sends `continue` when the head has arrived, so it has chosen the node by now.
      await once(outgoing, 'continue')
      outgoing.write('the beginning')
      uploads.push(outgoing)
    }
    await meanwhile()
    for (const outgoing of uploads) outgoing.end('the end')
    return Promise.all(answers)
  }
  const deny = (node: TestNode, state: string) =>
    apisix.barrier('PUT', 'entries', {
      entries: [{ uid: `pod-${node.port}`, ip: '127.0.0.1', port: node.port, state, ttl: 60 }]
    })
  const inflight = () => apisix.gateway.barrier?.inflight.of('127.0.0.1', undefined)
  const bodies = (answers: readonly Reply[]) => answers.map(({ body }) => body).toSorted()

  it('reach the node that was removed meanwhile', async () => {
    const answers = await upload(2, async () => {
      await apisix.admin('PATCH', 'upstreams/u', { nodes: { [old.address]: null } })
      await until('applied', () => apisix.gateway.workers[0]?.config.revision === apisix.store.revision)
    })
    expect(bodies(answers)).to.deep.equal([old.address, other.address].toSorted())
  })

  for (const state of ['draining', 'sealed'])
    it(`move away from a node that is ${state} meanwhile`, async () => {
      const answers = await upload(2, async () => void (await deny(old, state)))
      expect(bodies(answers)).to.deep.equal([other.address, other.address])
      expect(old.seen).to.deep.equal([])
      expect(apisix.gateway.barrier?.counts.moved).to.equal(1)
      await until('two facts', () => apisix.facts.length === 2)
      expect(inflight()).to.deep.equal({ requests: 0, long: 0 })
    })
})
