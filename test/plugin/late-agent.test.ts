import { expect } from 'chai'
import { Backend } from './backend.ts'
import { stopAll } from './clean-up.ts'
import { backends, many } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { withAgent, type WithAgent } from './with-agent.ts'

/** Two agents put entries of the same pod. The test plays one of them, which knows which pod takes over. */
describe('An agent that has not seen the successor yet', () => {
  let gateway: Gateway
  let world: WithAgent
  let old: Backend
  let next: Backend

  before(async function () {
    this.timeout(60_000)
    gateway = await Gateway.start({ workers: 2 })
    world = await withAgent(gateway)
    old = await Backend.start()
    next = await Backend.start()
  })
  after(async () => {
    await world?.close()
    await stopAll(gateway, old, next)
  })

  it('leaves the successor that the other one has named: no request is refused', async () => {
    const pod = await world.pod(old)
    await world.route([pod])
    const { host, port } = next.node
    const successors = { [old.node.port]: [`${host}:${port}`] }
    await gateway.barrier.put({ uid: pod.uid, ip: pod.ip, state: 'sealed', ttl: 30, successors })
    const hook = world.end(pod)
    await eventually('the agent has put the entry', async () => {
      const { entries } = await gateway.barrier.state()
      return (entries.find(({ uid }) => uid === pod.uid)?.ttl ?? 0) > 30
    })
    const replies = await many(`${gateway.url}/u`, 20)
    expect(backends(replies)).to.deep.equal([next.name])
    expect(await hook).to.include({ status: 200 })
  })
})

/** One tenant's route has a node with a name in a silent DNS zone. */
describe('A hook beside a silent name that changes all the time', () => {
  it('is answered', async () => {
    const gateway = await Gateway.start({ workers: 2 })
    const [ends, stays] = [await Backend.start(), await Backend.start()]
    const world = await withAgent(gateway)
    let n = 0
    const rename = () => {
      n = (n + 1) % 60
      const names = { [`n${n}.silent`]: false as const }
      const nodes = [{ host: `n${n}.silent`, port: 80, weight: 1 }]
      return gateway.configure({
        objects: { kinds: { services: [{ id: 'evil', upstream: { nodes } }] }, names }
      })
    }
    const pods = [await world.pod(ends), await world.pod(stays)] as const
    await world.route(pods)
    await rename()
    const renaming = setInterval(() => void rename(), 300)
    try {
      const { status, body } = await world.end(pods[0])
      expect(status).to.equal(200)
      expect(body.why).to.not.contain('in time')
    } finally {
      clearInterval(renaming)
      await world.close()
      await stopAll(gateway, ends, stays)
    }
  })
})
