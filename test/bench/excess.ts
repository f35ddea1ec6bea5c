import { readFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { builtFrom } from '../../sandbox/ends.ts'
import type { PodRecord } from '../../sandbox/kubelet/record.ts'
import { APP, GATEWAY_NAMESPACE, NAMESPACE, runningStatus } from '../../sandbox/manifests.ts'
import { now } from '../../sandbox/now.ts'
import type { SandboxMode } from '../../sandbox/owner/start.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { startWorld, type World } from '../../sandbox/world.ts'
import { HOOKS } from './hooks.ts'
import { roundTrip } from './overhead.ts'
import { spread, type Spread } from './stats.ts'

export interface ExcessCase {
  readonly mode: SandboxMode
  /** `rolling`: they roll one after the other, during the updates. */
  readonly gateways: 'all Ready' | 'one of three NotReady' | 'rolling'
}

/** What users feel: how long the agent lets a hook wait after nothing needs its pod any more. */
export interface ExcessResult {
  readonly requests: number
  readonly failed: number
  /** In rolling updates, where a pod starts for each that ends: on two cores its start takes the CPU of the gateways and of the agent. */
  readonly updateMs: Spread
  /** In a scale-down, one pod at a time: no pod starts. */
  readonly downMs: Spread
  /** Bare round trips during the scale-down: a put to all gateways at once, under the same load. */
  readonly tripMs: Spread
}

const REPLICAS = 10
/** Bare round trips for each pod of the scale-down. */
const TRIPS = 5

/** Makes these rolling updates of ten pods, in a new world, and then ends all but two of them. A replacement is there before a pod ends. */
export async function excess({ mode, gateways }: ExcessCase, rollouts: number): Promise<ExcessResult> {
  return await builtFrom(async (ends, close) => {
    const preStop = HOOKS['drain-barrier']
    const world = await startWorld({ replicas: REPLICAS, gateways: 3, workers: 2, seed: 1, mode, preStop })
    ends.push(() => world.close())
    if (gateways === 'one of three NotReady') notReady(world)
    const agent = await world.startAgent()
    const load = world.startLoad({ rate: 100, traffic: 'no-uploads', timeoutMs: 15_000, seed: 1 })
    await waitFor('requests are answered', () => (load.counts()?.requests ?? 0) > 100)
    const { store } = world.kubernetes
    const rolls = gateways === 'rolling' && world.rollGateways(load, new AbortController().signal)
    for (let n = 0; n < rollouts; n += 1) await rollOut({ store, kubelet: world.kubelet })
    await rolls
    const inUpdates = endedPods(world).length
    const connections = new Agent({ keepAlive: true })
    ends.push(() => connections.destroy())
    const trips: number[] = []
    for (let replicas = REPLICAS - 1; replicas > 1; replicas -= 1) {
      const ended = endedPods(world).length
      store.modify('deployments', NAMESPACE, APP, it => ({ ...it, spec: { ...it.spec, replicas } }))
      await waitFor('one pod is gone', () => endedPods(world).length > ended)
      for (let n = 0; n < TRIPS; n += 1) trips.push(await roundTrip(world, connections, `bench-${n}`))
    }
    const { requests, failed } = await load.stop()
    const took = excessOf(endedPods(world), await readFile(agent.logFile, 'utf8'))
    await close()
    const [update, down] = [took.slice(0, inUpdates), took.slice(inUpdates)]
    return { requests, failed, updateMs: spread(update), downMs: spread(down), tripMs: spread(trips) }
  })
}

/** In the order of their ends. */
const endedPods = ({ kubelet }: World): readonly PodRecord[] =>
  kubelet
    .records()
    .filter(({ goneAt }) => goneAt !== undefined)
    .toSorted((a, b) => (a.goneAt ?? 0) - (b.goneAt ?? 0))

/** From the later of the hook's arrival and the end of the pod's last request to the agent's answer, in ms. */
function excessOf(pods: readonly PodRecord[], log: string): readonly number[] {
  const offset = Date.now() - now()
  const answers = new Map<string, { readonly at: number; readonly elapsedMs: number }>()
  for (const line of log.split('\n').filter(text => text.includes('"hook answered"'))) {
    const { uid, time, elapsedMs } = JSON.parse(line) as { uid: string; time: string; elapsedMs: number }
    answers.set(uid, { at: Date.parse(time) - offset, elapsedMs })
  }
  return pods.map(({ uid, name, answeredAt }) => {
    const answer = answers.get(uid)
    if (!answer) throw new Error(`the agent did not answer the hook of ${name}`)
    return Math.max(0, Math.min(answer.elapsedMs, answer.at - answeredAt))
  })
}

function notReady({ kubernetes: { store }, gateways }: World): void {
  const { name, host } = gateways.gateways.at(-1)!
  const status = runningStatus(host, new Date().toISOString())
  const conditions = status.conditions.map(one => (one.type === 'Ready' ? { ...one, status: 'False' } : one))
  store.patchStatus('pods', GATEWAY_NAMESPACE, name, { ...status, conditions })
}
