import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { startAgent, type Agent } from '../../sandbox/agent.ts'
import { builtFrom } from '../../sandbox/ends.ts'
import { forkGateways, type ForkedGateways } from '../../sandbox/gateways/process.ts'
import { createAddresses } from '../../sandbox/kubelet/addresses.ts'
import { mountAccount, type MountedAccount } from '../../sandbox/kubernetes/account.ts'
import { startKubernetes, type Kubernetes } from '../../sandbox/kubernetes/server.ts'
import { gatewayPod, GATEWAY_NAMESPACE, runningStatus } from '../../sandbox/manifests.ts'
import { putObject } from '../../sandbox/owner/put.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { createPods, type Pods, type TestPod } from '../build/pods.ts'

/** An agent as users start it, in a separate process, with stand-ins for Kubernetes and APISIX. Every benchmark measures this agent. */
export interface Place extends Pods {
  readonly kubernetes: Kubernetes
  readonly account: MountedAccount
  readonly gateways: ForkedGateways
  readonly barrierToken: string
  readonly agent: Agent
  /** Stores `upstreams/<id>` with these nodes, through the Admin API. */
  upstream(id: string, pods: readonly TestPod[]): Promise<void>
  /** Returns a metric of the agent, summed over all its series whose line contains `matching`. */
  metric(name: string, matching?: string): Promise<number>
  /** How many pods the agent has seen. */
  podsKnown(): Promise<number>
  /** Resolves when the agent knows all existing pods and holders. */
  settled(holders: number): Promise<void>
  close(): Promise<void>
}

export interface PlaceOptions {
  readonly gateways: number
  readonly workers?: number
  readonly evidence?: 'barrier' | 'observed'
}

// These ports differ from the usual ports and from those of the sandbox and the tests, because all of these may run at once.
const PORTS = { proxy: 29_280, control: 29_290, admin: 29_380, barrier: 29_292, agent: 28_280 }
const TOKEN = 'b'.repeat(32)
const KEY = 'a'.repeat(32)
const AT_ONCE = 50
/** How long the agent may take to start: enough for 50,000 pods on a busy machine. */
const READY_MS = 300_000

/** Starts the stand-ins, runs `before`, which fills the cluster and the Admin API, and then starts the agent. */
export async function startPlace(
  { gateways: count, workers = 2, evidence = 'barrier' }: PlaceOptions,
  before: (place: Omit<Place, 'agent'>) => Promise<void> = async () => {}
): Promise<Place> {
  return await builtFrom(async (ends, close) => {
    const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-bench-'))
    ends.push(() => rm(directory, { recursive: true, force: true }))
    const addresses = createAddresses()
    const kubernetes = await startKubernetes()
    ends.push(() => kubernetes.close())
    const account = await mountAccount(kubernetes, join(directory, 'account'), GATEWAY_NAMESPACE)
    const gateways = await forkGateways({
      hosts: Array.from({ length: count }, () => addresses.allocate()),
      proxyPort: PORTS.proxy,
      controlPort: PORTS.control,
      adminPort: PORTS.admin,
      adminKey: KEY,
      barrier: { port: PORTS.barrier, token: TOKEN },
      workers
    })
    ends.push(() => gateways.close())
    for (const { name, host } of gateways.gateways) {
      kubernetes.store.create('pods', gatewayPod(name))
      const status = runningStatus(host, new Date().toISOString())
      kubernetes.store.patchStatus('pods', GATEWAY_NAMESPACE, name, status)
    }
    const host = addresses.allocate()
    const snapshot = async () =>
      (await (await fetch(`http://${host}:${PORTS.agent}/api/state`)).json()) as Snapshot
    const podsKnown = async () => (await snapshot()).watches.find(({ kind }) => kind === 'pods')?.objects ?? 0
    const metrics = async () => await (await fetch(`http://${host}:${PORTS.agent}/metrics`)).text()
    const metric: Place['metric'] = async (name, matching = '') =>
      (await metrics())
        .split('\n')
        .filter(
          line => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(matching)
        )
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
    const place: Omit<Place, 'agent'> = {
      ...createPods(kubernetes.store, addresses),
      kubernetes,
      account,
      gateways,
      barrierToken: TOKEN,
      upstream: (id, pods) =>
        putObject(gateways.admin, `upstreams/${id}`, {
          type: 'roundrobin',
          nodes: pods.map(({ ip, port }) => ({ host: ip, port, weight: 1 }))
        }),
      metric,
      podsKnown,
      async settled(holders) {
        const knows = async () =>
          (await snapshot()).holders.length >= holders &&
          (await podsKnown()) >= kubernetes.store.list('pods').length - count
        await waitFor('the agent has seen it all', knows)
      },
      close
    }
    await before(place)
    const agent = await startAgent({
      directory,
      kubernetes: { account },
      admin: gateways.admin,
      controlPort: PORTS.control,
      barrier: evidence === 'barrier' ? { port: PORTS.barrier, token: TOKEN } : undefined,
      gatewayNamespace: GATEWAY_NAMESPACE,
      host,
      port: PORTS.agent,
      readyMs: READY_MS
    })
    ends.push(() => agent.close())
    return { ...place, agent }
  })
}

/** Calls `each` for all items, several at a time. */
export async function forAll<T>(items: readonly T[], each: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values()
  const lane = async () => {
    for (const item of left) await each(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}
