import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { Backend } from './backend.ts'
import type { EntryIn } from './barrier.ts'
import { stopAll } from './clean-up.ts'
import { many } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'

const entries = (n: number, name: string, differs: Partial<EntryIn> = {}): EntryIn[] =>
  Array.from({ length: n }, (_, i) => ({
    uid: `${name}-${i}`,
    ip: `10.9.${i >> 8}.${i & 255}`,
    ttl: 60,
    ...differs
  }))

describe("Each worker's copy of the deny-list", () => {
  let gateway: Gateway
  let pod: Backend

  beforeEach(async () => {
    pod = await Backend.start()
  })
  afterEach(() => stopAll(gateway, pod))

  /** Returns the different deny-lists, as text, that the workers report in `times` reads. */
  async function told(g: Gateway, times = 20): Promise<string[]> {
    const seen = new Set<string>()
    for (let i = 0; i < times; i += 1) {
      const state = await g.barrier.state()
      seen.add(
        state.entries
          .map(e => `${e.uid} ${e.state}`)
          .toSorted()
          .join()
      )
    }
    return [...seen]
  }

  it('is the same in all of them after puts, seals and removals by any of them', async () => {
    gateway = await Gateway.start({ workers: 3 })
    const { barrier } = gateway
    const held = new Map<string, string>()
    for (let round = 0; round < 30; round += 1) {
      const some = entries(12, `r${round % 7}`, { state: round % 3 === 0 ? 'sealed' : 'draining' })
      await barrier.put(...some)
      for (const { uid, state = '' } of some) if (held.get(uid) !== 'sealed') held.set(uid, state)
      const gone = `r${(round * 3) % 7}-${round % 12}`
      await barrier.remove(gone)
      held.delete(gone)
      const want = [...held].map(([uid, state]) => `${uid} ${state}`)
      expect(await told(gateway, 4)).to.deep.equal([want.toSorted().join()])
    }
  })

  it('is brought up to date after more changes than are kept, in a worker that was frozen meanwhile', async () => {
    gateway = await Gateway.start({ workers: 2 })
    const { barrier, url } = gateway
    await gateway.configured({ u: { nodes: [pod.node] } })
    await barrier.put(...entries(100, 'early'))
    await gateway.lookedAgain()
    const [frozen = 0] = gateway.workers()
    process.kill(frozen, 'SIGSTOP')
    const put = async (...some: EntryIn[]) => {
      // if the frozen worker accepts the call, no answer comes, so the test tries again
      await eventually('another worker has taken it', async () => {
        const answer = await Promise.race([barrier.put(...some), wait(1000)])
        return answer !== undefined
      })
    }
    try {
      await put(...entries(900, 'late'))
      await put(pod.sealed)
    } finally {
      process.kill(frozen, 'SIGCONT')
    }
    await gateway.lookedAgain()
    expect((await told(gateway)).map(text => text.split(',').length)).to.deep.equal([1001])
    expect((await many(`${url}/u`, 12)).map(r => r.status)).to.deep.equal(Array(12).fill(503))
  })

  it('keeps an entry that is put again while other workers remove it as expired', async () => {
    // delays a worker that removes an expired entry, between its check and the removal
    const slow = `
      local clock = require("apisix.drain.host")
      local now = clock.now
      clock.now = function()
        local at = now()
        while ngx.get_phase() == "timer" and now() < at + 0.002 do end
        return at
      end`
    gateway = await Gateway.start({ workers: 3, before: slow })
    const { barrier } = gateway
    const some = entries(60, 'again', { ttl: 2, state: 'sealed' })
    await barrier.put(...some)
    for (let round = 0; round < 4; round += 1) {
      // the entries have expired, and each worker removes them at its next beat, four times a second
      await wait(2020 + round * 60)
      const answer = await barrier.put(...some)
      expect(answer.entries.filter(e => e.error !== undefined)).to.deep.equal([])
      expect(answer.entries.every(({ state }) => state === 'sealed')).to.equal(true)
      await wait(100)
      const { entries: found } = await barrier.inflight(some.map(({ uid }) => uid))
      expect(found.filter(({ state }) => state === 'sealed')).to.have.length(some.length)
    }
  })

  it('frees the space of expired entries', async () => {
    gateway = await Gateway.start({ workers: 2, dictionary: '200k' })
    const { barrier } = gateway
    const send = async (name: string) =>
      await barrier.send('PUT', '/v1/barrier/entries', {
        entries: entries(1000, name, { ttl: 1, state: 'draining' })
      })
    const stored = async (name: string) => (await send(name)).body.entries.filter(e => !e.error).length
    const { free } = (await barrier.state()).dictionary
    const first = await stored('first')
    expect(first).to.be.within(50, 900)
    expect((await barrier.state()).dictionary.free).to.be.below(free / 2)
    await eventually(
      'the room is free again',
      async () => (await barrier.state()).dictionary.free > free * 0.75
    )
    expect(await stored('then')).to.be.above(first * 0.9)
  })
})
