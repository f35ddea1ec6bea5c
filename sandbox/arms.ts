import type { Arrival } from './app/report.ts'
import { controllerEnds, hasAgent, lateBy, type ArmName, type RunOptions } from './cli.ts'
import type { HookRecord } from './kubelet/hook.ts'
import type { PodRecord } from './kubelet/record.ts'
import type { Hook } from './kubernetes/objects.ts'
import type { LoadCounts } from './load/options.ts'
import { summary } from './percentile.ts'
import { keep } from './keep.ts'
import type { ArmDetail } from './report.ts'
import { rollOut, type RolloutState } from './rollout.ts'
import { waitFor } from './wait-for.ts'
import { isAtPort } from './kubelet/addresses.ts'
import { startWorld, type World } from './world.ts'

/** The progress of an arm, for the progress line. */
export interface ArmState {
  readonly stage: 'starting' | 'warming up' | 'rolling' | 'settling'
  readonly load: LoadCounts | undefined
  readonly rollout: RolloutState | undefined
  /** The URL of the dashboard, once the agent runs. */
  readonly dashboard?: string
}

export interface Arm {
  readonly detail: ArmDetail
  /** The world of this arm, still up but without load. */
  readonly world: World
}

/**
 * The hook in the README, for users to paste. Only the pod's own address is added, which the sandbox needs. With ports there is none, and
 * macOS has no `timeout`: curl's limit is enough for a sandbox.
 */
const drainHook = (agentUrl: string): Hook => ({
  exec: {
    command: [
      'sh',
      '-c',
      `sleep 5 & ${isAtPort(agentUrl) ? '' : 'timeout 24 '}sh -c 'for pause in 0 1 1; do sleep $pause
         curl -fsS -m 24 --noproxy "*" --connect-timeout 0.7 ${isAtPort(agentUrl) ? '' : '--interface $POD_IP '}-X POST \
           "${agentUrl}/v1/prestop?namespace=$POD_NAMESPACE&pod=$POD_NAME&container=app&sleep=5s" && exit
         [ $? = 22 ] && break
       done; false' && kill $! 2>/dev/null || wait`
    ]
  }
})

/** The hook of the pods in each arm, once the address of the agent is known. */
export function hookOf(name: ArmName): ((agentUrl: string) => Hook) | undefined {
  if (hasAgent(name)) return drainHook
  return name.endsWith('sleep-5') ? () => ({ exec: { command: ['sleep', '5'] } }) : undefined
}

/** How long requests are sent before and after the rolling update; after it for at least the owner's longest lag. */
const WARM_UP_MS = 1000
const SETTLE_MS = 3000
const SETTLED_MS = 1000
const LISTED_MS = 60_000
/** A request fails after this time. A busy machine delays requests much less, so a timeout is a failure of the arm. */
const REQUEST_MS = 15_000

/** Runs one rolling update under load in a new world, or two after the end of the ingress controller. The caller closes the world. */
export async function runArm(
  name: ArmName,
  options: RunOptions,
  onState: (state: ArmState) => void,
  signal: AbortSignal
): Promise<Arm> {
  onState({ stage: 'starting', load: undefined, rollout: undefined })
  const { replicas, gateways, workers, seed, rate, podRate, traffic, evidence, keepLogs, mode, ports } =
    options
  const lateMs = options.lateMs ?? lateBy(name)
  const world = await startWorld(
    {
      replicas,
      gateways,
      workers,
      seed,
      podRate,
      evidence,
      mode,
      ports,
      preStop: hookOf(name),
      accessLog: keepLogs !== undefined
    },
    signal
  )
  try {
    // Without an ingress controller the agent must add the new pods, so `sync` needs the agent in every arm.
    if (hasAgent(name) || mode === 'sync') {
      const { url } = await world.startAgent(signal)
      onState({ stage: 'starting', load: undefined, rollout: undefined, dashboard: `${url}/` })
    }
    const load = world.startLoad({ rate, seed, traffic, timeoutMs: REQUEST_MS })
    let rollout: RolloutState | undefined
    const say = (stage: ArmState['stage']) => onState({ stage, load: load.counts(), rollout })
    const pass = async (stage: ArmState['stage'], ms: number) => {
      const end = performance.now() + ms
      await waitFor(stage, () => (say(stage), performance.now() >= end), { signal })
    }
    await waitFor('requests are answered', () => (load.counts()?.requests ?? 0) > 0, { signal })
    await pass('warming up', WARM_UP_MS)
    const onProgress = (state: RolloutState) => {
      rollout = state
      say('rolling')
    }
    const { store } = world.kubernetes
    const { kubelet } = world
    const roll = () => rollOut({ store, kubelet, onProgress, signal })
    if (controllerEnds(name)) await world.owner.close()
    if (lateMs !== undefined) world.delayOwner(lateMs)
    const gatewaysRoll = options.rolls ? world.rollGateways(load, signal) : undefined
    const [first] = await Promise.all([roll(), gatewaysRoll])
    const rolloutMs = first + (controllerEnds(name) ? await roll() : 0)
    if (lateMs !== undefined)
      await waitFor(
        'the ingress controller has listed the new pods',
        () => (say('settling'), world.hasOwnerCaughtUp()),
        // A full sync that began before the last change is followed by another one.
        { withinMs: 2 * lateMs + LISTED_MS, signal }
      )
    await pass('settling', lateMs !== undefined || controllerEnds(name) ? SETTLED_MS : SETTLE_MS)
    const result = await load.stop()
    if (keepLogs !== undefined) await keep(keepLogs, name, world, result)
    const ended = kubelet.records().filter(({ goneAt }) => goneAt !== undefined)
    return {
      world,
      detail: {
        ...hookFigures(name, ended),
        name,
        requests: result.requests,
        failed: result.failed,
        load: result,
        aboveMs: podRate && Math.max(...kubelet.records().map(({ arrivals }) => aboveMs(arrivals, podRate))),
        rolloutMs: Math.round(rolloutMs)
      }
    }
  } catch (error) {
    if (keepLogs !== undefined) await keep(keepLogs, name, world)
    await world.close()
    throw error
  }
}

/** The longest time in which more than `rate` requests arrived within any second, in ms. */
export function aboveMs(arrivals: readonly Pick<Arrival, 'at'>[], rate: number): number {
  let [longest, from, to] = [0, 0, -Infinity]
  for (const [i, { at }] of arrivals.entries()) {
    const until = (arrivals[i - rate]?.at ?? -Infinity) + 1000
    if (until <= at) continue
    if (at > to) from = at
    to = until
    longest = Math.max(longest, to - from)
  }
  return longest
}

function hookFigures(
  name: ArmName,
  ended: readonly PodRecord[]
): Pick<ArmDetail, 'hookMs' | 'hooks' | 'answers' | 'late'> {
  const hooks = ended.flatMap(record => record.hooks)
  return {
    hookMs: summary(hooks.map(({ startedAt, endedAt }) => endedAt - startedAt)),
    hooks: { run: hooks.length, failed: hooks.filter(({ ok }) => !ok).length },
    answers: hasAgent(name) ? countAnswers(hooks) : {},
    late: ended.flatMap(lateArrivals).length
  }
}

/** Requests that reached the pod after its hook had ended: no gateway should have sent them there. */
function lateArrivals({ hooks, arrivals }: PodRecord) {
  const endedAt = Math.max(...hooks.map(hook => hook.endedAt))
  return hooks.length === 0 ? [] : arrivals.filter(({ at }) => at > endedAt)
}

/** Counts the outputs of hooks: `{"drained (barrier)": 5, "no answer": 1}`. */
function countAnswers(hooks: readonly HookRecord[]): Readonly<Record<string, number>> {
  const answers = Map.groupBy(hooks, ({ output }) => readAnswer(output))
  return Object.fromEntries([...answers].map(([answer, { length }]) => [answer, length]))
}

/** The result and evidence in the last line, which is the agent's ack. curl's errors and an empty output (a fallback) are `no answer`. */
function readAnswer(output: string): string {
  try {
    const ack = JSON.parse(output.trim().split('\n').at(-1) ?? '') as Readonly<Record<string, unknown>>
    return `${String(ack['result'])} (${String(ack['evidence'])})`
  } catch {
    return 'no answer'
  }
}
