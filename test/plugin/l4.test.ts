import { expect } from 'chai'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { send } from './client.ts'

/**
 * Debian's nginx has no Lua in its stream subsystem, so this location writes the slots that the subsystem would write.
 * test/plugin/l4/main.ts tests the subsystem itself, with a real APISIX.
 */
const HALVES = `
  location /halves {
    content_by_lua_block {
      local counts = ngx.shared["apisix-drain-counts"]
      local workers = require("apisix.drain.workers")
      local why, slot = ngx.var.arg_why, 100
      for i = 1, slot + 20 do
        counts:safe_add("s|" .. i, true)
      end
      for _, worker in ipairs(workers.list(counts)) do
        if not worker.stream and worker.id < tonumber(ngx.var.arg_n) then
          slot = slot + 1
          local number = 1000 + worker.number
          counts:set("w|" .. slot, number .. " " .. worker.id .. " " .. worker.pid .. "  stream")
          counts:set("d|" .. number, ngx.var.arg_other or worker.shared)
          counts:set("u|" .. number, why)
          counts:set("o|" .. number, tonumber(ngx.var.arg_sessions))
        end
      end
    }
  }
`

const A = { host: '10.0.0.1', port: 80, weight: 1 }
const B = { host: '10.0.0.2', port: 80, weight: 1 }

describe('Plugin: the stream subsystem of each worker', () => {
  let gateway: Gateway

  beforeEach(async () => {
    gateway = await Gateway.start({ workers: 2, server: HALVES, early: 'FAKE_APISIX={stream_proxy={9100}}' })
    const nodes = [A, B]
    const kinds = { upstreams: [{ id: 'u', nodes }], routes: [{ id: '1', upstream_id: 'u' }] }
    await gateway.configured({ objects: { kinds } })
    gateway.barrier.words = true
  })
  afterEach(async () => {
    await gateway?.stop()
  })

  const halves = (query: string) => send(`${gateway.url}/halves?${query}`)
  const told = async () => (await gateway.barrier.put({ uid: 'a', ip: A.host })).entries[0]
  const l4 = async () => (await gateway.barrier.state()).workers.map(worker => worker.l4)
  const complete = () =>
    eventually('the words are complete', async () => (await told())?.word.tag !== undefined)

  it('takes no part: L4 is not covered', async () => {
    await complete()
    expect(new Set(await l4())).to.deep.equal(new Set(['no dictionary in the block lua']))
    expect((await told())?.word.l4).to.equal(false)
  })

  it('is not there, as stream mode is off: nothing is uncovered', async () => {
    await gateway.stop()
    gateway = await Gateway.start({ workers: 2 })
    gateway.barrier.words = true
    await eventually('both workers are there', async () => (await l4()).length === 2)
    expect(new Set(await l4())).to.deep.equal(new Set([undefined]))
    expect((await told())?.word).to.not.have.property('l4')
  })

  it('of every worker: L4 is covered, and each of them has to give its own word', async () => {
    await halves('n=2')
    expect(await l4()).to.deep.equal(['covered', 'covered'])
    await eventually('the HTTP halves have spoken', async () => (await told())?.word.said === 2)
    const word = (await told())?.word
    expect({ asked: word?.asked, tag: word?.tag, l4: word?.l4 }).to.deep.equal({
      asked: 4,
      tag: undefined,
      l4: undefined
    })
    expect((await gateway.barrier.state()).fit).to.equal(true)
  })

  it('of one worker only: L4 is not covered', async () => {
    await halves('n=1')
    expect((await l4()).filter(one => one === 'covered')).to.have.length(1)
    expect((await told())?.word.l4).to.equal(false)
  })

  it('that gives a reason: L4 is not covered, no word of it is waited for, and the gateway stays fit', async () => {
    await halves('n=2&why=udp')
    expect(await l4()).to.deep.equal(['udp', 'udp'])
    await complete()
    expect((await told())?.word.l4).to.equal(false)
    expect((await gateway.barrier.state()).fit).to.equal(true)
  })

  it('with another deny-list: L4 is not covered', async () => {
    await halves('n=2&other=another')
    expect((await told())?.word.l4).to.equal(false)
  })

  it('has sessions in flight: they count, also if it covers nothing', async () => {
    await halves('n=2&sessions=3&why=udp')
    expect((await told())?.inflight.requests).to.equal(6)
  })
})
