import { expect } from 'chai'
import { Backend, LONG_POD } from './backend.ts'
import type { EntryOut } from './barrier.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { eventStream, grpcCall, grpcStream, websocket, type LongConnection } from './long-clients.ts'

const UPDATES = 20
/** Seconds after which an answer that has begun counts as a stream, in this suite. */
const STREAM_AFTER = 2

const startPod = () => Backend.start(0, LONG_POD)

describe('Requests that do not end by themselves', () => {
  let gateway: Gateway

  before(async () => {
    gateway = await Gateway.start({ workers: 3, attr: `stream_after = ${STREAM_AFTER}` })
  })
  after(async () => await gateway?.stop())

  const route = async (...pods: readonly Backend[]) =>
    await gateway.configured({
      u: { nodes: pods.map(pod => pod.node) },
      g: { scheme: 'grpc', nodes: pods.map(pod => pod.grpc) }
    })

  /** Both ports of a pod. */
  const entriesOf = (pod: Backend, state: 'draining' | 'sealed' = 'draining') => [
    pod.entry({ state }),
    pod.entry({ port: pod.grpc.port, state })
  ]

  const countsOf = async (pod: Backend) => {
    const { entries } = await gateway.barrier.inflight([pod.uid])
    const sum = (of: (counts: EntryOut['inflight']) => number | undefined) =>
      entries.reduce((total, { inflight }) => total + (of(inflight) ?? 0), 0)
    return {
      requests: sum(counts => counts.requests),
      upgraded: sum(counts => counts.upgraded),
      sse: sum(counts => counts.sse),
      streams: sum(counts => counts.streams),
      oldest: Math.max(...entries.map(({ inflight }) => inflight.oldest ?? 0))
    }
  }

  describe('are counted by kind', () => {
    let pod: Backend
    const open: LongConnection[] = []

    beforeEach(async () => {
      pod = await startPod()
      await route(pod)
      await gateway.barrier.put(...entriesOf(pod))
    })
    afterEach(async () => {
      for (const connection of open.splice(0)) connection.close()
      await pod.kill()
    })

    const become = async (what: string, counts: object) =>
      await eventually(what, async () => {
        const now: Record<string, number> = await countsOf(pod)
        return Object.entries(counts).every(([kind, n]) => now[kind] === n)
      })

    it('websockets at once, with the age of the oldest, until they close', async () => {
      open.push(await websocket(gateway), await websocket(gateway))
      await become('both are upgraded', { requests: 0, upgraded: 2, sse: 0, streams: 0 })
      await eventually('the oldest has an age', async () => (await countsOf(pod)).oldest > 0.5)
      for (const connection of open.splice(0)) connection.close()
      await become('nothing is in flight', { requests: 0, upgraded: 0, oldest: 0 })
    })

    it('server-sent events at once, by their content type', async () => {
      open.push(await eventStream(gateway))
      await become('it is an event stream', { requests: 0, upgraded: 0, sse: 1, streams: 0 })
    })

    it('a gRPC stream after a second, and a gRPC call that is slow to answer never', async () => {
      const call = grpcCall(gateway)
      open.push(await grpcStream(gateway))
      await become('the stream is one, the call is a request', { requests: 1, streams: 1 })
      expect(await call).to.equal('hello')
      await become('only the stream is left', { requests: 0, streams: 1 })
    })

    it('a download that has begun after the setting’s time, and it still arrives whole', async () => {
      const reply = fetch(`${gateway.url}/u/download?ms=4500`)
      await become('it has begun', { requests: 1, streams: 0 })
      await become('it is a stream', { requests: 0, streams: 1 })
      expect(await (await reply).text()).to.equal('begin end')
      await become('nothing is in flight', { requests: 0, streams: 0 })
    })

    it('a request whose answer has not begun stays a request, however old it is', async () => {
      const reply = fetch(`${gateway.url}/u?ms=4000`)
      await become('it is in flight', { requests: 1 })
      await (await reply).text()
      // The request took twice the setting, and counted as an ordinary one until its end.
      await become('nothing is in flight', { requests: 0, streams: 0 })
    })
  })

  it('with stream_after 0, a download holds the hook until it ends', async () => {
    const other = await Gateway.start({ workers: 2, attr: 'stream_after = 0' })
    const pod = await startPod()
    try {
      await other.configured({ u: { nodes: [pod.node] } })
      await other.barrier.put(pod.entry())
      const reply = fetch(`${other.url}/u/download?ms=4500`).then(async answer => await answer.text())
      let isOver = false
      void reply.then(() => (isOver = true))
      await eventually('it is in flight', async () => {
        const [entry] = (await other.barrier.inflight([pod.uid])).entries
        return entry?.inflight.requests === 1
      })
      const [last] = (await other.barrier.inflight([pod.uid], 20, 'requests')).entries
      expect(last?.inflight).to.include({ requests: 0, long: 0 })
      await reply
      expect(isOver).to.equal(true)
    } finally {
      await pod.kill()
      await other.stop()
    }
  })

  const KINDS = {
    websocket: { open: websocket, told: '1001' },
    'event stream': { open: eventStream, told: 'the pod ends' },
    'gRPC stream': { open: grpcStream, told: 'OK' }
  }
  for (const [name, { open, told }] of Object.entries(KINDS)) {
    it(`${UPDATES} pods end, each with one ${name}: the ack comes at once, the client is told by the pod, and nothing comes after the ack`, async () => {
      const { barrier } = gateway
      const acks: number[] = []
      let failed = 0
      let sent = 0
      let pod = await startPod()
      await route(pod)
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
        await barrier.put(...entriesOf(pod))
        await eventually(`the ${name} is known as one`, async () => {
          const { upgraded, sse, streams } = await countsOf(pod)
          return upgraded + sse + streams === 1
        })
        await barrier.remove(pod.uid)
        const next = await startPod()
        await route(pod, next)

        const began = performance.now()
        await barrier.put(...entriesOf(pod, 'sealed'))
        await eventually('no request is in flight', async () => {
          const { entries } = await barrier.inflight([pod.uid], 10, 'requests')
          return entries.every(({ inflight }) => inflight.requests === 0)
        })
        acks.push(performance.now() - began)
        const atAck = pod.requests.length
        expect(
          (await countsOf(pod)).upgraded + (await countsOf(pod)).sse + (await countsOf(pod)).streams
        ).to.equal(1)
        await pod.terminate()
        expect(await connection.end).to.equal(told)
        expect(pod.requests.length).to.equal(atAck)
        await route(next)
        await barrier.remove(pod.uid)
        pod = next
      }
      over.abort()
      await Promise.all(clients)
      await pod.kill()
      acks.sort((a, b) => a - b)
      console.log(
        `      ${sent} requests, ${failed} failed; ack p50 ${acks[acks.length >> 1]?.toFixed(0)} ms, max ${acks.at(-1)?.toFixed(0)} ms`
      )
      expect(sent).to.be.above(100)
      expect(failed).to.equal(0)
    }).timeout(240_000)
  }
})
