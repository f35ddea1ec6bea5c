import { expect } from 'chai'
import { until } from '../../../build/apisix.ts'
import { rowsOf } from '../../../build/rows.ts'
import {
  deadAddress,
  httpNode,
  opened,
  rawNode,
  send,
  testGateway,
  type TestGateway,
  type TestNode
} from './fixture.ts'

interface Measured {
  readonly case: string
  readonly method?: string
  readonly warm?: number
  readonly more?: Record<string, unknown>
  readonly nodes: readonly Record<string, number>[]
  readonly status: readonly number[]
  readonly seen?: readonly (number | string)[]
}

const MEASURED = rowsOf('../../../recordings/proxy.yaml', import.meta.url) as readonly Measured[]
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst'

const NODES = {
  good: () => httpNode(),
  dead: async () => ({ address: await deadAddress(), port: 0, seen: [], close: async () => {} }),
  resets: () => rawNode(socket => socket.resetAndDestroy()),
  closes: () => rawNode(socket => socket.end()),
  silent: () => rawNode(() => {}),
  stingy: () => rawNode((socket, requests) => void (requests === 1 ? socket.write(OK) : socket.end()))
}

describe('sandbox/apisix proxy answers a client as APISIX does', () => {
  const all = opened()
  let apisix: TestGateway
  beforeEach(async () => {
    apisix = all.add(await testGateway({ workers: 1 }))
  })
  afterEach(() => all.close())
  const url = (): string => `${apisix.gateway.urls.proxy}/x`

  for (const { case: name, method = 'GET', warm = 0, more = {}, nodes, status, seen = [] } of MEASURED)
    it(`${method} ${name}: ${JSON.stringify(nodes)} ${JSON.stringify(more)} ${status.join()}`, async () => {
      const made: TestNode[] = []
      for (const one of nodes)
        made.push(all.add<TestNode>(await NODES[Object.keys(one)[0] as keyof typeof NODES]()))
      const weights = nodes.map((one, i) => [made[i]!.address, Object.values(one)[0]])
      await apisix.route(Object.fromEntries(weights), more)
      const got: number[] = []
      for (let n = 0; n < 2 + 2 * warm; n += 1)
        got.push((await send(url(), { method, ...(method !== 'GET' && { body: 'hello' }) })).status)
      expect(got.slice(2 * warm).sort((a, b) => a - b)).to.deep.equal(status)
      for (const [i, count] of seen.entries())
        if (typeof count === 'number') expect(made[i]!.seen.length).to.equal(count)
        else expect(made[i]!.seen.length).to.be.at.least(Number(count.replace('at least ', '')))
    })

  it('no route: 404 of APISIX; upstream deleted with force: 502', async () => {
    const reply = await send(url())
    expect([reply.status, JSON.parse(reply.body)]).to.deep.equal([404, { error_msg: '404 Route Not Found' }])
    await apisix.route({ '127.0.0.1:1': 1 })
    await apisix.admin('DELETE', 'upstreams/u?force=true')
    expect((await send(url())).status).to.equal(502)
  })

  it('node dies in the middle of a body: 200, truncated', async () => {
    const node = await rawNode(socket => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello')
      setTimeout(() => socket.resetAndDestroy(), 30)
    })
    await apisix.route({ [all.add(node).address]: 1 })
    expect(await send(url())).to.deep.equal({ status: 200, body: 'hello', truncated: true })
    await until('one fact', () => apisix.facts.length === 1)
    expect(apisix.facts[0]?.truncated).to.equal(true)
  })
})
