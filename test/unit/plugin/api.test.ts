import { expect } from 'chai'
import {
  eventually,
  httpNode,
  opened,
  send,
  testGateway,
  TOKEN,
  type TestGateway
} from '../sandbox/apisix/fixture.ts'
import type { EntryOut } from '../../plugin/barrier.ts'

const entry = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  uid: 'pod-a',
  ip: '127.0.0.1',
  state: 'draining',
  ttl: 60,
  ...more
})

describe('the Barrier API, in the VM', () => {
  const all = opened()
  let apisix: TestGateway

  beforeEach(async () => {
    apisix = all.add(await testGateway())
  })
  afterEach(() => all.close())

  const put = (...entries: Record<string, unknown>[]) => apisix.barrier('PUT', 'entries', { entries })
  const told = (answer: { body: Record<string, unknown> }): EntryOut[] => answer.body['entries'] as EntryOut[]

  it('does not reopen a sealed entry by a draining put; a removal does', async () => {
    await put(entry({ state: 'sealed' }))
    expect(told(await put(entry({ ttl: 100 })))[0]?.state).to.equal('sealed')
    expect(
      (await apisix.barrier('DELETE', 'entries', { uids: ['pod-a', 'nobody'] })).body['removed']
    ).to.equal(1)
    expect(told(await put(entry()))[0]?.state).to.equal('draining')
  })

  const ask = (wait: number, uids = ['pod-a']) => apisix.barrier('POST', 'inflight', { uids, wait })

  it('waits no longer than it is asked to, and not for unknown uids', async () => {
    let finish = () => {}
    const node = all.add(await httpNode((_, response) => (finish = () => response.end())))
    await apisix.route({ [node.address]: 1 })
    const request = send(`${apisix.gateway.urls.proxy}/`)
    await eventually(() => node.seen.length === 1)
    await put(entry())
    const began = performance.now()
    expect(told(await ask(0.05))[0]?.inflight.requests).to.equal(1)
    expect(performance.now() - began).to.be.at.least(48)
    finish()
    await request
    expect((await ask(10_000, ['nobody'])).status).to.equal(400)
    expect((await ask(30, ['nobody'])).body).to.deep.include({ entries: [], unknown: ['nobody'] })
  })

  it('refuses bodies that are not JSON, other paths and methods, long bodies, and a wrong token', async () => {
    const at = (path: string, method: string, body?: string, token = TOKEN) =>
      send(`${apisix.gateway.urls.barrier}/v1/barrier/${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body })
      })
    const replies = [
      await at('entries', 'PUT', '{'),
      await at('nothing', 'GET'),
      await at('state', 'PUT'),
      await at('entries', 'PUT', ' '.repeat(1024 * 1024 + 1)),
      await at('state', 'GET', undefined, 'wrong')
    ]
    expect(replies.map(({ status }) => status)).to.deep.equal([400, 404, 405, 413, 401])
    for (const { body } of replies) expect(JSON.parse(body)).to.have.property('error_msg')
  })

  it("keeps off the shortcut of APISIX's plugin ai; a worker that takes it is unfit", async () => {
    const node = all.add(await httpNode())
    const upstream = { type: 'roundrobin', nodes: { [node.address]: 1 } }
    const statusAfterChange = async () => {
      await apisix.admin('PUT', 'routes/r', { uri: '/*', upstream })
      const { workers } = apisix.gateway
      await eventually(() => workers.every(({ config }) => config.revision === apisix.store.revision))
      return (await send(`${apisix.gateway.urls.proxy}/`)).status
    }
    const unfit = async () => String((await apisix.barrier('GET', 'state')).body['unfit'])
    expect(await statusAfterChange()).to.equal(200)
    await put(entry({ port: node.port, state: 'sealed' }))
    expect(await statusAfterChange()).to.equal(503)
    expect(await unfit()).to.equal('')
    apisix.gateway.barrier!.run(`
      local event, i, name, own = require("apisix.core.event"), 0
      repeat i = i + 1; name, own = debug.getupvalue(event.push, i) until name == "own"
      event.push = own.push`)
    expect(await statusAfterChange()).to.equal(200)
    expect(await unfit()).to.not.equal('')
    expect(apisix.gateway.log.join()).to.contain(
      `unfit: a request went to ${node.address} past the barrier: apisix.plugins.ai connected it`
    )
  })
})
