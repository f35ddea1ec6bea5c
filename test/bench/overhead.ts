import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { callHook } from '../build/hook.ts'
import type { TestPod } from '../build/pods.ts'
import { startPlace, type Place } from './place.ts'
import { ratio, spread, type Spread } from './stats.ts'

/** How much time the agent adds to the round trips that every proof needs. */
export interface OverheadResult {
  readonly gateways: number
  /** The time of a put of one entry to all gateways at once, over open connections, until the last gateway has answered. */
  readonly roundTripMs: Spread
  /** The time from the call of a hook to its ack, with nothing in flight. */
  readonly ackMs: Spread
  readonly ratio: { readonly p50: number; readonly p99: number }
}

const GATEWAYS = 3
/** The number of rounds before the measurement, in which V8 compiles the code. */
const WARM_UP = 30

/**
 * Measures round trips and acks in turn, so that a slow moment of the machine affects both.
 * @param hookAfterMs the time from the deletion of a pod to the call of its hook, as a kubelet must first start `curl`
 */
export async function overhead(drains: number, hookAfterMs: number): Promise<OverheadResult> {
  const pods: TestPod[] = []
  const place = await startPlace({ gateways: GATEWAYS }, async place => {
    for (let i = 0; i <= drains + WARM_UP; i += 1) pods.push(place.pod(`web-${i}`))
    await place.upstream('web', pods)
  })
  const connections = new Agent({ keepAlive: true })
  const roundTrips: number[] = []
  const acks: number[] = []
  try {
    await place.settled(1)
    for (const [i, pod] of pods.slice(1).entries()) {
      const trip = await roundTrip(place, connections, `bench-${i}`)
      const ack = await drain(place, pod, hookAfterMs)
      if (i < WARM_UP) continue
      roundTrips.push(trip)
      acks.push(ack)
    }
  } finally {
    connections.destroy()
    await place.close()
  }
  const [roundTripMs, ackMs] = [spread(roundTrips), spread(acks)]
  return {
    gateways: GATEWAYS,
    roundTripMs,
    ackMs,
    ratio: { p50: ratio(ackMs.p50, roundTripMs.p50), p99: ratio(ackMs.p99, roundTripMs.p99) }
  }
}

async function drain(place: Place, pod: TestPod, hookAfterMs: number): Promise<number> {
  const { hostname, port } = new URL(place.agent.url)
  place.end(pod)
  if (hookAfterMs > 0) await wait(hookAfterMs)
  const { ms, body } = await callHook({ host: hostname, port: Number(port), from: pod.ip })
  if (body.result !== 'drained' || body.evidence !== 'barrier') {
    throw new Error(`${pod.name} was answered ${JSON.stringify(body)}`)
  }
  place.gone(pod)
  return ms
}

/** The time, in ms, in which all gateways at once store an entry of no pod. */
export async function roundTrip(
  place: Pick<Place, 'gateways' | 'barrierToken'>,
  agent: Agent,
  uid: string
): Promise<number> {
  const startedAt = performance.now()
  const call = (method: string, body: object) =>
    Promise.all(
      place.gateways.gateways.map(({ barrier }) => send(`${barrier}/v1/barrier/entries`, method, body))
    )
  const send = (url: string, method: string, body: object) =>
    new Promise<void>((resolve, reject) => {
      const text = JSON.stringify(body)
      const outgoing = request(
        url,
        {
          method,
          agent,
          headers: {
            authorization: `Bearer ${place.barrierToken}`,
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text)
          }
        },
        response => {
          response.resume()
          response.once('end', () =>
            response.statusCode === 200
              ? resolve()
              : reject(new Error(`${method} ${url}: ${response.statusCode}`))
          )
        }
      )
      outgoing.once('error', reject)
      outgoing.end(text)
    })
  await call('PUT', { entries: [{ uid, ip: '10.255.0.1', state: 'sealed', ttl: 60 }] })
  const took = performance.now() - startedAt
  await call('DELETE', { uids: [uid] })
  return took
}
