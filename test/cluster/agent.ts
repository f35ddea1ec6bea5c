import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../plugin/eventually.ts'
import { BARE, CHART, helm } from '../chart/helm.ts'
import { GATEWAY_NAMESPACE } from './objects/gateways.ts'
import type { PodRecord } from './pods.ts'
import type { World } from './world.ts'

const IN_NAMESPACE = `--namespace=${GATEWAY_NAMESPACE}`
/** The port at which an agent serves its metrics. */
const PAGE_PORT = 8081
const ANSWERS = /^apisix_drain_hook_answers_total\{result="([^"]+)",evidence="([^"]+)"\} ([1-9]\d*)$/gm

/** `helm upgrade --install` with these values besides `BARE`, as `--set-json` takes them; resolves when the agents are ready. */
export async function installAgent(
  world: World,
  values: Readonly<Record<string, unknown>> = {}
): Promise<void> {
  const sets = Object.entries({ ...BARE, ...values }).map(
    ([path, value]) => `--set-json=${path}=${JSON.stringify(value)}`
  )
  const { kubeconfig } = world.cluster.controlPlane
  const release = ['apisix-drain', CHART, IN_NAMESPACE, `--kubeconfig=${kubeconfig}`]
  const { ok, stderr } = helm('upgrade', '--install', ...release, ...sets)
  if (!ok) throw new Error(stderr)
  await settled(world)
}

/** `kubectl scale`; resolves when that many agents are ready, and the others gone. */
export async function scaleAgent(world: World, replicas: number): Promise<void> {
  await world.kube('scale', 'deployment/apisix-drain', IN_NAMESPACE, `--replicas=${replicas}`)
  await settled(world)
}

async function settled({ kube, records }: World): Promise<void> {
  await kube('rollout', 'status', 'deployment/apisix-drain', IN_NAMESPACE, '--timeout=120s')
  const ending = () => records.of('apisix-drain').filter(({ endingAt, goneAt }) => endingAt && !goneAt)
  await eventually('agents that end are gone', () => ending().length === 0)
}

/** Returns the output of `doctor` in an agent's pod. Rejects if `doctor` finds that the agent cannot work. */
export const doctor = ({ kube }: World): Promise<string> =>
  kube('exec', 'deployment/apisix-drain', IN_NAMESPACE, '--', 'node', 'agent/main.ts', 'doctor')

/** Number of answered hooks, by `result/evidence`. */
export type Answers = Readonly<Record<string, number>>

/** Returns all answers of the running agents, as their metrics count them. */
export async function answers(world: World): Promise<Answers> {
  const sums: Record<string, number> = {}
  for (const { address } of running(world)) {
    const response = await fetch(`http://${address}:${PAGE_PORT}/metrics`)
    for (const [, result, evidence, count] of (await response.text()).matchAll(ANSWERS)) {
      const key = `${result}/${evidence}`
      sums[key] = (sums[key] ?? 0) + Number(count)
    }
  }
  return sums
}

/** Returns the running agents' answers to the pods of `app`. They come from the logs, because metrics name no pods. */
export async function answersTo(world: World, app: string): Promise<Answers> {
  const counted = total(await answers(world))
  const pods = new Set(world.records.of(app).map(({ uid }) => uid))
  let lines: readonly HookAnswer[] = []
  // The agent logs every answer that it counts, but the line reaches the file a moment later.
  await eventually(
    'every answer is in the log',
    () => (lines = running(world).flatMap(agent => logged(world, agent))).length >= counted
  )
  const sums: Record<string, number> = {}
  for (const { result, evidence } of lines.filter(({ uid }) => pods.has(uid)))
    sums[`${result}/${evidence}`] = (sums[`${result}/${evidence}`] ?? 0) + 1
  return sums
}

export const total = (given: Answers): number => Object.values(given).reduce((sum, count) => sum + count, 0)

const running = ({ records }: World): readonly PodRecord[] =>
  records.of('apisix-drain').filter(({ endingAt }) => !endingAt)

interface HookAnswer {
  readonly uid: string
  readonly result: string
  readonly evidence: string
}

/** containerd writes a time, the name of the stream and `F` before each line. */
const LOGGED = /^\S+ stdout F (\{.*"msg":"hook answered".*\})$/gm

function logged({ cluster }: World, { namespace, name, uid }: PodRecord): readonly HookAnswer[] {
  const folders = cluster.kubelets.map(({ podLogs }) => join(podLogs, `${namespace}_${name}_${uid}`))
  return folders
    .filter(folder => existsSync(folder))
    .flatMap(folder => globSync(join(folder, '*/*.log')))
    .flatMap(file => [...readFileSync(file, 'utf8').matchAll(LOGGED)])
    .map(([, line = '']) => JSON.parse(line) as HookAnswer)
}
