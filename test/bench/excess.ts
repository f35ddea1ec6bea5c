import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { builtFrom } from '../../sandbox/ends.ts'
import { GATEWAY_NAMESPACE, runningStatus } from '../../sandbox/manifests.ts'
import { now } from '../../sandbox/now.ts'
import type { SandboxMode } from '../../sandbox/owner/start.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { startWorld, type World } from '../../sandbox/world.ts'
import { HOOKS } from './hooks.ts'
import { spread, type Spread } from './stats.ts'

export interface ExcessCase {
  readonly mode: SandboxMode
  /** The condition `Ready` of one of the three gateways. */
  readonly allReady: boolean
}

/** What users feel: how long a hook waits after nothing needs its pod any more. */
export interface ExcessResult {
  readonly requests: number
  readonly failed: number
  /** From the later of (the hook's start, the end of the pod's last request) to the end of the hook. */
  readonly excessMs: Spread
  /** A hook of the same form that the agent answers at once, under the same load. */
  readonly floorMs: Spread
}

const FLOORS = 40
const run = promisify(execFile)

/** Makes these rolling updates of ten pods, in a new world. A replacement is there before a pod ends. */
export async function excess({ mode, allReady }: ExcessCase, rollouts: number): Promise<ExcessResult> {
  return await builtFrom(async (ends, close) => {
    const preStop = HOOKS['drain-barrier']
    const world = await startWorld({ replicas: 10, gateways: 3, workers: 2, seed: 1, mode, preStop })
    ends.push(() => world.close())
    if (!allReady) notReady(world)
    await world.startAgent()
    const load = world.startLoad({ rate: 100, traffic: 'no-uploads', timeoutMs: 15_000, seed: 1 })
    await waitFor('requests are answered', () => (load.counts()?.requests ?? 0) > 100)
    const floorMs = await floors(world)
    const { kubelet, kubernetes } = world
    for (let n = 0; n < rollouts; n += 1) await rollOut({ store: kubernetes.store, kubelet })
    const { requests, failed } = await load.stop()
    const excessMs = kubelet
      .records()
      .flatMap(({ hooks, answeredAt }) =>
        hooks.map(({ startedAt, endedAt }) => endedAt - Math.max(startedAt, Math.min(answeredAt, endedAt)))
      )
    await close()
    return { requests, failed, excessMs: spread(excessMs), floorMs: spread(floorMs) }
  })
}

function notReady({ kubernetes: { store }, gateways }: World): void {
  const { name, host } = gateways.gateways.at(-1)!
  const status = runningStatus(host, new Date().toISOString())
  const conditions = status.conditions.map(one => (one.type === 'Ready' ? { ...one, status: 'False' } : one))
  store.patchStatus('pods', GATEWAY_NAMESPACE, name, { ...status, conditions })
}

async function floors({ agentUrl }: World): Promise<readonly number[]> {
  const took: number[] = []
  for (let n = 0; n < FLOORS; n += 1) {
    const from = now()
    await run('sh', ['-c', `curl -fsS --noproxy '*' "${agentUrl}/healthz" || sleep 5`])
    took.push(now() - from)
  }
  return took
}
