import { eventually } from '../plugin/eventually.ts'
import { CHART, helm } from '../chart/helm.ts'
import { GATEWAY_NAMESPACE } from './objects/gateways.ts'
import type { World } from './world.ts'

const IN_NAMESPACE = `--namespace=${GATEWAY_NAMESPACE}`
const GONE_MS = 60_000
const AGENT_PORT = 8080
const ANSWERS = /^apisix_drain_hook_answers_total\{result="([^"]+)",evidence="([^"]+)"\} (\d+)$/gm

/** `helm upgrade --install` with these values, as `--set-json` takes them; resolves when the agents are ready. */
export async function installAgent(
  world: World,
  values: Readonly<Record<string, unknown>> = {}
): Promise<void> {
  const sets = Object.entries(values).map(([path, value]) => `--set-json=${path}=${JSON.stringify(value)}`)
  const { kubeconfig } = world.cluster.controlPlane
  const release = ['apisix-drain', CHART, IN_NAMESPACE, `--kubeconfig=${kubeconfig}`]
  const { ok, stderr } = helm('upgrade', '--install', ...release, ...sets)
  if (!ok) throw new Error(stderr)
  await settled(world)
}

/** `kubectl scale`; resolves when as many are ready, and the others gone. */
export async function scaleAgent(world: World, replicas: number): Promise<void> {
  await world.kube('scale', 'deployment/apisix-drain', IN_NAMESPACE, `--replicas=${replicas}`)
  await settled(world)
}

async function settled({ kube, records }: World): Promise<void> {
  await kube('rollout', 'status', 'deployment/apisix-drain', IN_NAMESPACE, '--timeout=120s')
  const ending = () => records.of('apisix-drain').filter(({ endingAt, goneAt }) => endingAt && !goneAt)
  await eventually('agents that end are gone', () => ending().length === 0, GONE_MS)
}

/** What `doctor` says in an agent's pod. Rejects when it finds that the agent cannot work. */
export const doctor = ({ kube }: World): Promise<string> =>
  kube('exec', 'deployment/apisix-drain', IN_NAMESPACE, '--', 'node', 'agent/main.ts', 'doctor')

/** How many hooks the agents that run have answered, by `result/evidence`. */
export async function answers({ records }: World): Promise<Readonly<Record<string, number>>> {
  const sums: Record<string, number> = {}
  for (const { address } of records.of('apisix-drain').filter(({ endingAt }) => !endingAt)) {
    const response = await fetch(`http://${address}:${AGENT_PORT}/metrics`)
    for (const [, result, evidence, count] of (await response.text()).matchAll(ANSWERS)) {
      const key = `${result}/${evidence}`
      sums[key] = (sums[key] ?? 0) + Number(count)
    }
  }
  return sums
}
