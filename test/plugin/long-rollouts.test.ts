import { expect } from 'chai'
import { Backend, LONG_POD } from './backend.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { eventStream, grpcStream, websocket } from './long-clients.ts'
import { withAgent, type LivePod, type WithAgent } from './with-agent.ts'

/** How many pods end for each kind of connection. `npm run bench:long` makes the full run, and prints its figures. */
const UPDATES = Number(process.env['UPDATES'] ?? 3)
/** The most that the median hook may take, in ms. Only the full run checks it, on a machine that does nothing else. */
const MOST_P50_MS = 150

const KINDS = {
  websocket: { open: websocket, told: '1001', left: { upgraded: 1, sse: 0, streams: 0 } },
  'event stream': { open: eventStream, told: 'the pod ends', left: { upgraded: 0, sse: 1, streams: 0 } },
  'gRPC stream': { open: grpcStream, told: 'OK', left: { upgraded: 0, sse: 0, streams: 1 } }
}

describe('Rolling updates with the agent, under load', () => {
  let gateway: Gateway
  let world: WithAgent

  before(async function () {
    this.timeout(60_000)
    gateway = await Gateway.start({ workers: 2 })
    world = await withAgent(gateway)
  })
  after(async () => {
    await world?.close()
    await gateway?.stop()
  })

  const start = async () => await world.pod(await Backend.start(0, LONG_POD))

  /** Resolves when the gateway counts one long-lived connection to this pod. A put for another uid reads the count. */
  const isKnown = async ({ backend }: LivePod) => {
    const look = { uid: 'look', ip: backend.node.host }
    await eventually('the connection is known as long-lived', async () => {
      const { entries } = await gateway.barrier.put(look)
      return entries[0]?.inflight.long === 1
    })
    await gateway.barrier.remove('look')
  }

  for (const [name, { open, told, left }] of Object.entries(KINDS)) {
    it(`${UPDATES} pods end, each with one ${name}: its hook is answered at once, the pod tells its client, and nothing comes after the ack`, async () => {
      const hooks: number[] = []
      let failed = 0
      let sent = 0
      let pod = await start()
      await world.route([pod])
      const over = new AbortController()
      const load = async (): Promise<void> => {
        while (!over.signal.aborted) {
          const reply = await fetch(`${gateway.url}/u`).catch(() => undefined)
          await reply?.text()
          sent += 1
          if (reply?.status !== 200) failed += 1
        }
      }
      const clients = [load(), load()]
      for (let update = 0; update < UPDATES; update += 1) {
        const connection = await open(gateway)
        await isKnown(pod)
        const next = await start()
        await world.route([pod, next])

        const { status, ms, body } = await world.end(pod)
        const atAck = pod.backend.requests.length
        hooks.push(ms)
        expect(status, JSON.stringify(body)).to.equal(200)
        expect(body).to.include({ result: 'drained', evidence: 'barrier' })
        expect(body.longLived).to.include(left)
        await pod.backend.terminate()
        expect(await connection.end).to.equal(told)
        expect(pod.backend.requests.length).to.equal(atAck)
        world.gone(pod)
        await world.route([next])
        pod = next
      }
      over.abort()
      await Promise.all(clients)
      await pod.backend.kill()
      world.gone(pod)
      hooks.sort((a, b) => a - b)
      const p50 = hooks[hooks.length >> 1] ?? Number.NaN
      console.log(
        `      ${name}: ${sent} requests, ${failed} failed; hook p50 ${p50.toFixed(0)} ms, max ${hooks.at(-1)?.toFixed(0)} ms`
      )
      expect(sent).to.be.above(0)
      expect(failed).to.equal(0)
      if (UPDATES >= 20) expect(p50).to.be.below(MOST_P50_MS)
    }).timeout(240_000)
  }
})

describe('A download that has begun, with the agent', () => {
  /** The duration of the download. A hook that does not wait for the download takes less, even on a busy machine. */
  const DOWNLOAD_MS = 12_000

  const downloading = async (
    attr: string,
    act: (world: WithAgent, pod: LivePod, over: Promise<string>) => Promise<void>
  ) => {
    const gateway = await Gateway.start({ workers: 2, attr })
    const world = await withAgent(gateway)
    const [pod, next] = [
      await world.pod(await Backend.start(0, LONG_POD)),
      await world.pod(await Backend.start(0, LONG_POD))
    ]
    try {
      await world.route([pod])
      const reply = await fetch(`${gateway.url}/u/download?ms=${DOWNLOAD_MS}`)
      await world.route([pod, next])
      await act(world, pod, reply.text())
    } finally {
      for (const { backend } of [pod, next]) await backend.kill()
      await world.close()
      await gateway.stop()
    }
  }

  it('is a stream after stream_after: the hook is answered, and the download goes on', async () => {
    await downloading('stream_after = 1', async (world, pod, over) => {
      let isOver = false
      void over.then(() => (isOver = true))
      const { body } = await world.end(pod)
      expect(body).to.include({ result: 'drained', evidence: 'barrier' })
      expect(body.longLived).to.include({ streams: 1 })
      expect(isOver).to.equal(false)
      expect(await over).to.equal('begin end')
    })
  })

  it('with stream_after 0 it is an ordinary request: the hook waits until it is over', async () => {
    await downloading('stream_after = 0', async (world, pod, over) => {
      let isAnswered = false
      const hook = world.end(pod).finally(() => (isAnswered = true))
      expect(await over).to.equal('begin end')
      expect(isAnswered).to.equal(false)
      expect((await hook).body).to.deep.include({ result: 'drained', evidence: 'barrier', longLived: null })
    })
  })
})
