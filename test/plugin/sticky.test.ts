import { expect } from 'chai'
import { Agent } from 'node:http'
import { Backend } from './backend.ts'
import { send } from './client.ts'
import { Gateway } from './gateway.ts'

const SESSIONS = 1000
const AT_ONCE = 20

/** APISIX's chash names a pod by the hash of the session's key, and remembers nothing. */
describe('Sticky sessions (chash)', () => {
  let gateway: Gateway
  const pods: Backend[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })

  before(async () => {
    gateway = await Gateway.start({ workers: 2 })
    while (pods.length < 4) pods.push(await Backend.start())
  })
  after(async () => {
    agent.destroy()
    await gateway?.stop()
    for (const pod of pods) await pod.kill()
  })

  afterEach(async () => {
    await gateway.barrier.remove(...pods.map(({ uid }) => uid))
  })

  /** The pod that each session reaches. `headers` of a session make its key. */
  const reached = async (headers: (session: number) => Record<string, string>): Promise<string[]> => {
    const heard: string[] = []
    let next = 0
    const client = async () => {
      while (next < SESSIONS) {
        const session = next
        next += 1
        const reply = await send(`${gateway.url}/u`, { headers: headers(session), agent })
        heard[session] = reply.backend ?? `status ${reply.status}`
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
    return heard
  }

  const KEYS = {
    cookie: (session: number) => ({ cookie: `sid=s-${session}` }),
    header: (session: number) => ({ sid: `s-${session}` })
  }
  for (const hash_on of ['cookie', 'header'] as const)
    it(`by ${hash_on}: only those of the sealed pod move, and they come back to it with its end undone`, async () => {
      const nodes = pods.map(({ node }) => node)
      await gateway.configured({ u: { type: 'chash', hash_on, key: 'sid', nodes } })
      const [ending, ...others] = pods as [Backend, ...Backend[]]
      const before = await reached(KEYS[hash_on])
      expect(new Set(before).size).to.equal(pods.length)

      for (const state of ['draining', 'sealed'] as const) {
        await gateway.barrier.put(ending.entry({ state }))
        const during = await reached(KEYS[hash_on])
        expect(new Set(during), state).to.deep.equal(new Set(others.map(({ name }) => name)))
        const moved = before.filter((pod, session) => during[session] !== pod)
        expect(new Set(moved), state).to.deep.equal(new Set([ending.name]))
      }

      await gateway.barrier.remove(ending.uid)
      expect(await reached(KEYS[hash_on])).to.deep.equal(before)
    })
})
