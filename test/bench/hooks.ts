import type { AtSigterm } from '../../sandbox/app/server.ts'
import { endAll, type Ends } from '../../sandbox/ends.ts'
import type { Hook } from '../../sandbox/kubernetes/objects.ts'
import type { Traffic } from '../../sandbox/load/options.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { startWorld, type World } from '../../sandbox/world.ts'
import { startNaive } from './naive.ts'
import { spread, type Spread } from './stats.ts'

/** The preStop hooks to compare. Each is measured by a rolling update of ten pods under load. */
export const HOOK_ARMS = [
  'no-hook',
  'sleep-5',
  'sleep-15',
  'admin-answered',
  'drain-observed',
  'drain-barrier'
] as const
export type HookArm = (typeof HOOK_ARMS)[number]

/** The conditions under which the arms run. */
export interface Situation {
  readonly traffic: Traffic
  /** Requests a second. */
  readonly rate: number
  /** The workers of one of the two gateways apply each write up to this many ms late. */
  readonly behindMs?: number
  /** Whether the app finishes or drops its accepted requests at SIGTERM. */
  readonly atSigterm: AtSigterm
  /** How many rolling updates follow each other, under the same load. */
  readonly rollouts: number
}

export const EASY: Situation = { traffic: 'no-uploads', rate: 400, atSigterm: 'finish', rollouts: 1 }
/**
 * Slow answers, slow uploads (APISIX picks their node up to 2 s before it connects), websockets, a gateway that applies writes
 * late, and an app that drops its accepted requests at SIGTERM.
 */
export const HARD: Situation = {
  traffic: 'with-websockets',
  rate: 100,
  behindMs: 500,
  atSigterm: 'drop',
  rollouts: 2
}

export interface HookRun {
  readonly requests: number
  /** How many pods ended. */
  readonly ended: number
  readonly failed: number
  /** How many of the failed requests had no whole answer in time. The cause can be a busy machine. */
  readonly timedOut: number
  readonly hookMs: readonly number[]
  readonly rolloutMs: number
  /** The time from the deletion of a pod, as its host saw it, to the last request that reached the pod. */
  readonly lastRequestMs: readonly number[]
}

export interface HookArmResult {
  readonly arm: HookArm
  readonly rounds: number
  readonly requests: number
  /** Failed requests of each round. */
  readonly failed: readonly number[]
  readonly hookMs: Spread
  readonly rolloutMs: Spread
  readonly lastRequestMs: Spread
}

const TIMEOUT_MS = 15_000
const WORLD = { replicas: 10, gateways: 2, workers: 2 }
const WARM_UP_MS = 1000
const SETTLE_MS = 3000

/** Makes the rolling updates of one round, in a new world, and returns the measurements. */
export async function hookRun(arm: HookArm, seed: number, situation: Situation = EASY): Promise<HookRun> {
  const world = await startWorld({
    ...WORLD,
    ...(situation.behindMs !== undefined && { behindMs: situation.behindMs }),
    seed,
    atSigterm: situation.atSigterm,
    evidence: arm === 'drain-observed' ? 'observed' : 'barrier',
    preStop: HOOKS[arm]
  })
  const ends: Ends = [() => world.close()]
  try {
    if (arm.startsWith('drain-')) await world.startAgent()
    else if (arm === 'admin-answered') ends.push(await startNaive(world))
    return await underLoad(world, seed, situation)
  } finally {
    await endAll(ends)
  }
}

async function underLoad(
  world: World,
  seed: number,
  { traffic, rate, rollouts }: Situation
): Promise<HookRun> {
  const load = world.startLoad({ rate, traffic, timeoutMs: TIMEOUT_MS, seed })
  const pass = async (what: string, ms: number) => {
    const end = performance.now() + ms
    await waitFor(what, () => performance.now() >= end)
  }
  await waitFor('requests are answered', () => (load.counts()?.requests ?? 0) > 0)
  await pass('warmed up', WARM_UP_MS)
  const { kubernetes, kubelet } = world
  let rolloutMs = 0
  for (let n = 0; n < rollouts; n += 1) rolloutMs += await rollOut({ store: kubernetes.store, kubelet })
  await pass('settled', SETTLE_MS)
  const { requests, failed, byKind } = await load.stop()
  const ended = kubelet.records().filter(({ deletionSeenAt }) => deletionSeenAt !== undefined)
  return {
    requests,
    ended: ended.length,
    failed,
    timedOut: byKind.timeout,
    rolloutMs,
    hookMs: ended.flatMap(({ hooks }) => hooks.map(({ startedAt, endedAt }) => endedAt - startedAt)),
    lastRequestMs: ended.flatMap(({ deletionSeenAt, arrivals }) =>
      deletionSeenAt === undefined ? [] : [Math.max(0, ...arrivals.map(({ at }) => at - deletionSeenAt))]
    )
  }
}

/** Returns all rounds of one arm as one row. */
export function hookResult(arm: HookArm, runs: readonly HookRun[]): HookArmResult {
  return {
    arm,
    rounds: runs.length,
    requests: runs.reduce((sum, run) => sum + run.requests, 0),
    failed: runs.map(run => run.failed),
    hookMs: spread(runs.flatMap(run => run.hookMs)),
    rolloutMs: spread(runs.map(run => run.rolloutMs)),
    lastRequestMs: spread(runs.flatMap(run => run.lastRequestMs))
  }
}

const shell = (script: string): Hook => ({ exec: { command: ['sh', '-c', script] } })
const ask = (url: string, path: string) =>
  shell(
    `curl -fsS --noproxy '*' --connect-timeout 2 -m 24 --interface $POD_IP -X POST "${url}${path}" || sleep 5`
  )
const NAMED = '/v1/prestop?namespace=$POD_NAMESPACE&pod=$POD_NAME'

export const HOOKS: Record<HookArm, ((agentUrl: string) => Hook) | undefined> = {
  'no-hook': undefined,
  'sleep-5': () => shell('sleep 5'),
  'sleep-15': () => shell('sleep 15'),
  'admin-answered': url => ask(url, '/'),
  'drain-observed': url => ask(url, NAMED),
  'drain-barrier': url => ask(url, NAMED)
}
