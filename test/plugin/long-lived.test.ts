import { expect } from 'chai'
import { Backend, LONG_POD } from './backend.ts'
import type { EntryOut } from './barrier.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { eventStream, grpcCall, grpcStream, websocket, type LongConnection } from './long-clients.ts'

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

  /** Returns the entries of both ports of a pod. */
  const entriesOf = (pod: Backend) => [pod.entry(), pod.entry({ port: pod.grpc.port })]

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
      pod.release()
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
      // The request took twice as long as the setting, and counted as an ordinary request until its end.
      await become('nothing is in flight', { requests: 0, streams: 0 })
    })
  })
})
