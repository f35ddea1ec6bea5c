import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createAgents, type Agents } from '../../../../agent/report/peers/agents.ts'
import { createBook } from '../../../../agent/report/peers/book.ts'
import { until } from '../../../build/apisix.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'
import { briefOf } from '../../../build/shared.ts'

describe('the last answers of an agent that ends (D7)', () => {
  let servers: Server[]
  let agents: Agents
  let questions: number
  beforeEach(() => {
    servers = []
    questions = 0
  })
  afterEach(async () => {
    await agents.stop()
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
  })

  /** Starts a stand-in for another agent, which only answers this agent. */
  const other = async (id: string, answers = true): Promise<string> => {
    const book = createBook()
    const server = createServer((_, response) => {
      questions++
      if (answers) response.end(JSON.stringify(book.share(briefOf(id), 0)))
      else response.destroy()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    servers.push(server)
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const begin = (...peers: readonly string[]) => {
    agents = createAgents({
      peers,
      brief: () => briefOf('own'),
      pass: () => '',
      changed: () => {},
      clock: manualClock(),
      log: memoryLog().log
    })
    agents.start()
    return agents
  }
  const live = () =>
    agents.together({ ...briefOf('own'), agents: [] } as never).agents.filter(({ link }) => link === 'live')
  const ended = async (promise: Promise<void>) => {
    let is = false
    void promise.then(() => (is = true))
    await new Promise(setImmediate)
    return is
  }

  it('are handed over once every live agent has asked again, by its own id', async () => {
    begin(await other('b'), await other('c'), await other('silent', false))
    await until('two are live', () => live().length === 2)
    agents.share('own', 0, 'b')
    const done = agents.handOver(new AbortController().signal)
    expect(await ended(done), 'a question before it does not count').to.equal(false)
    agents.share('own', 0, 'b')
    agents.share('own', 0, 'b')
    expect(await ended(done), 'c has not asked').to.equal(false)
    agents.share('own', 0, 'c')
    await done
  })

  it('wait for no agent that never answered', async () => {
    begin(await other('silent', false))
    await until('it was asked', () => questions > 0)
    await agents.handOver(new AbortController().signal)
  })

  it('wait no longer than their bound for an agent that has died', async () => {
    begin(await other('b'))
    await until('it is live', () => live().length === 1)
    servers[0]!.closeAllConnections()
    servers[0]!.close()
    const bound = new AbortController()
    const done = agents.handOver(bound.signal)
    bound.abort(new Error('the bound is over'))
    expect(await done.catch((error: Error) => error.message)).to.equal('the bound is over')
  })
})
