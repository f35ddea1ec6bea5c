import { setTimeout as wait } from 'node:timers/promises'
import { putObject } from '../../sandbox/owner/put.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { callHook } from '../build/hook.ts'
import type { TestPod } from '../build/pods.ts'
import { startPlace, type Place } from './place.ts'
import { spread, type Spread } from './stats.ts'

/** `Recreate` with a quick ingress controller: all pods of an upstream end, and the controller empties the upstream. */
export interface RecreateResult {
  /** The time from the deletion of the pods to the controller's write. */
  readonly writtenMs: Spread
  /** The time from the deletion to the last hook's answer. */
  readonly ackMs: Spread
  /** The time from the controller's write to the last hook's answer: the hook makes the outage longer by this time. */
  readonly afterWriteMs: Spread
}

const GATEWAYS = 2
const PODS = 3
/** Real controllers took 70 to 340 ms to write. */
const CONTROLLER_MS = 100
/** The number of rounds before the measurement, in which V8 compiles the code. */
const WARM_UP = 3

/** Rejects if a hook was answered with any other evidence than the barrier. */
export async function recreate(times: number): Promise<RecreateResult> {
  const services: TestPod[][] = []
  const place = await startPlace({ gateways: GATEWAYS }, async place => {
    for (let n = 0; n < times + WARM_UP; n += 1) {
      const pods = Array.from({ length: PODS }, (_, i) => place.pod(`web-${n}-${i}`, { graceSeconds: 60 }))
      services.push(pods)
      await writeUpstream(place, n, pods)
      await putObject(place.gateways.admin, `routes/web-${n}`, { uri: `/${n}/*`, upstream_id: `web-${n}` })
    }
  })
  const written: number[] = []
  const acks: number[] = []
  try {
    await place.settled(services.length)
    for (const [n, pods] of services.entries()) {
      const began = performance.now()
      for (const pod of pods) place.end(pod)
      const answers = Promise.all(pods.map(pod => answeredAt(place, pod)))
      await wait(CONTROLLER_MS)
      await writeUpstream(place, n, [])
      const writtenAt = performance.now()
      const last = Math.max(...(await answers))
      for (const pod of pods) place.gone(pod)
      if (n < WARM_UP) continue
      written.push(writtenAt - began)
      acks.push(last - began)
    }
  } finally {
    await place.close()
  }
  return {
    writtenMs: spread(written),
    ackMs: spread(acks),
    afterWriteMs: spread(acks.map((ack, i) => ack - written[i]!))
  }
}

const writeUpstream = ({ gateways }: Pick<Place, 'gateways'>, n: number, pods: readonly TestPod[]) =>
  putObject(gateways.admin, `upstreams/web-${n}`, {
    type: 'roundrobin',
    labels: { 'managed-by': 'apisix-ingress-controller' },
    nodes: arrayOf(pods)
  })

/** Calls the hook of this pod. Resolves with the time of the answer by the monotonic clock, in ms. */
async function answeredAt(place: Place, pod: TestPod): Promise<number> {
  const { hostname, port } = new URL(place.agent.url)
  const { body, at } = await callHook({ host: hostname, port: Number(port), from: pod.ip })
  if (body.evidence !== 'barrier') throw new Error(`${pod.name} was answered ${JSON.stringify(body)}`)
  return at
}
