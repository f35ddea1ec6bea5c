import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { expect } from 'chai'
import {
  deadAddress,
  eventually,
  httpNode,
  opened,
  testGateway,
  type TestGateway,
  type TestNode
} from '../sandbox/apisix/fixture.ts'

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
      await eventually(() => apisix.gateway.workers[0]?.config.revision === apisix.store.revision)
    })
    expect(bodies(answers)).to.deep.equal([old.address, other.address].toSorted())
  })

  for (const state of ['draining', 'sealed'])
    it(`move away from a node that is ${state} meanwhile`, async () => {
      const answers = await upload(2, async () => void (await deny(old, state)))
      expect(bodies(answers)).to.deep.equal([other.address, other.address])
      expect(old.seen).to.deep.equal([])
      expect(apisix.gateway.barrier?.counts.moved).to.equal(1)
      await eventually(() => apisix.facts.length === 2)
      expect(inflight()).to.deep.equal({ requests: 0, long: 0 })
    })

  it('delay nothing: a node is not counted while a body is being read', async () => {
    const seen: unknown[] = []
    await upload(2, async () => {
      seen.push(inflight())
      const { body } = await deny(old, 'sealed')
      seen.push((body['entries'] as { inflight: unknown }[])[0]?.inflight)
    })
    const none = { requests: 0, long: 0 }
    expect(seen).to.deep.equal([none, none])
  })

  it('keep a draining node if no other is left, which counts as a bypass', async () => {
    const answers = await upload(1, async () => {
      await deny(old, 'draining')
      await deny(other, 'sealed')
    })
    expect(bodies(answers)).to.deep.equal([old.address])
    expect(apisix.gateway.barrier?.counts.bypasses).to.equal(1)
  })

  it('are answered 503 if every node is sealed meanwhile and no other is known', async () => {
    const answers = await upload(2, async () => {
      await deny(old, 'sealed')
      await deny(other, 'sealed')
    })
    expect(answers.map(({ status }) => status)).to.deep.equal([503, 503])
    expect([old.seen, other.seen]).to.deep.equal([[], []])
    expect(apisix.gateway.barrier?.counts).to.include({ refused: 2, moved: 0 })
    expect(inflight()).to.deep.equal({ requests: 0, long: 0 })
  })

  it('go to a node that became known meanwhile if all their first nodes are sealed', async () => {
    const next = all.add(await httpNode())
    const answers = await upload(2, async () => {
      await apisix.route({ [next.address]: 1 })
      await deny(old, 'sealed')
      await deny(other, 'sealed')
    })
    expect(bodies(answers)).to.deep.equal([next.address, next.address])
    expect(apisix.gateway.barrier?.counts).to.include({ refused: 0, moved: 2 })
  })

  it('that failed at a node do not try it again when they go to the nodes of the present', async () => {
    const [dead, next] = [await deadAddress(), all.add(await httpNode())]
    await apisix.route({ [dead]: 1, [old.address]: 1 })
    const answers = await upload(12, async () => {
      await apisix.route({ [dead]: 1, [next.address]: 1 })
      await deny(old, 'sealed')
    })
    expect(bodies(answers)).to.deep.equal(Array(12).fill(next.address))
  })
})
