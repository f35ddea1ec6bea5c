import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UPSTREAM } from '../agent/rules/drain/annotations.ts'
import { startAgent, type Agent } from './agent.ts'
import type { AtSigterm } from './app/server.ts'
import { builtFrom, type Ends } from './ends.ts'
import type { GatewayAddress } from './gateways/options.ts'
import { forkGateways, type ForkedGateways } from './gateways/process.ts'
import { AT_PORTS, createAddresses, createPorts, hasLoopback } from './kubelet/addresses.ts'
import { startKubelet, type Kubelet } from './kubelet/kubelet.ts'
import { podStore } from './kubelet/pod-store.ts'
import { mountAccount } from './kubernetes/account.ts'
import { startControllers } from './kubernetes/controllers/start.ts'
import type { Hook } from './kubernetes/objects.ts'
import { startKubernetes, type Kubernetes } from './kubernetes/server.ts'
import type { LoadOptions } from './load/options.ts'
import { forkLoad, type LoadProcess } from './load/process.ts'
import * as manifests from './manifests.ts'
import { now } from './now.ts'
import type { Owner, OwnerWrite } from './owner/owner.ts'
import { startMode, SYNCED, type SandboxMode } from './owner/start.ts'
import { readyNodes, storeSlices } from './owner/slices.ts'
import { createRandom } from './random.ts'
import { isRolledOut } from './rollout.ts'
import { measureSyncLags, type SyncLags } from './sync-lag.ts'
import { waitFor } from './wait-for.ts'

export interface WorldOptions {
  readonly replicas: number
  readonly gateways: number
  readonly workers: number
  readonly seed: number
  /** One gateway, on ports of 127.0.0.1. The default where the system has no other addresses in 127/8. */
  readonly ports?: boolean | undefined
  /** The workers of the last gateway apply each write up to this many ms late. */
  readonly behindMs?: number
  /** How the pods' app treats the requests that it has accepted at SIGTERM; default `finish`. */
  readonly atSigterm?: AtSigterm
  /** The most requests that a pod serves in a second. */
  readonly podRate?: number | undefined
  /** Makes the pods' preStop hook once the address of the agent is known. */
  readonly preStop?: ((agentUrl: string) => Hook) | undefined
  /** How APISIX is run, and so which component writes its upstreams; default `etcd-1.8`. */
  readonly mode?: SandboxMode
  /** From an endpoint change to the owner's write. */
  readonly ownerLag?: { readonly minMs: number; readonly maxMs: number }
  /** The best evidence that the agent is configured to get. All gateways have the plugin either way. */
  readonly evidence?: Evidence
  /** Writes every request that a gateway has finished to `files.access`, and every call of an Admin API to `files.admin`. */
  readonly accessLog?: boolean
}

/** The evidence behind the agent's answers. */
export type Evidence = 'barrier' | 'observed'

/** The environment of an agent, up and serving: the Deployment is rolled out and every gateway routes to it. */
export interface World {
  readonly kubernetes: Kubernetes
  readonly gateways: ForkedGateways
  readonly kubelet: Kubelet
  readonly owner: Owner
  readonly syncLags: SyncLags
  /** The token of the gateways' Barrier APIs. */
  readonly barrierToken: string
  readonly kubeconfigFile: string
  /** The URL at which `startAgent` makes the agent listen, and which the hooks call. */
  readonly agentUrl: string
  /** Deleted with the world. A file exists only if something was written to it. */
  readonly files: Readonly<Record<'agent' | 'config' | 'access' | 'admin', string>>
  /** From now on the owner writes this many ms after a change. */
  delayOwner(ms: number): void
  /** Whether the owner's last write lists the pods that are Ready now. */
  hasOwnerCaughtUp(): boolean
  startAgent(signal?: AbortSignal): Promise<Agent>
  startLoad(options: Omit<LoadOptions, 'targets' | 'path'>): LoadProcess
  /** A rolling update of the gateways: each ends after its requests, and another one takes its address before the next ends. */
  rollGateways(load: LoadProcess, signal: AbortSignal): Promise<void>
  /** Ends everything that this world started. A second call does nothing. */
  close(): Promise<void>
}

/** From a pod's creation to the start of its process: fast for a real pod, but never instant. */
const SET_UP = { minMs: 300, maxMs: 1200 }
/** A stress: the real controllers write 70 ms (1.8.4) to 340 ms (2.2.0) after a change. */
const OWNER_LAG = { minMs: 500, maxMs: 2000 }
/** Not the usual ports: a server on all addresses of this machine (an APISIX, any server on 8080) would conflict. */
const PORTS = { proxy: 29_080, control: 29_090, admin: 29_180, barrier: 29_092, agent: 28_080 }
const APP_MAIN = fileURLToPath(new URL('app/main.ts', import.meta.url))

/**
 * Builds a world. The Kubernetes API, the kubelet and the owner run in this process; gateways, pods, load and agent are
 * processes of their own.
 */
export function startWorld(options: WorldOptions, signal?: AbortSignal): Promise<World> {
  return builtFrom((ends, close) => build(options, ends, close, signal))
}

async function build(
  options: WorldOptions,
  ends: Ends,
  close: () => Promise<void>,
  signal: AbortSignal | undefined
): Promise<World> {
  const random = createRandom(options.seed)
  const ports = options.ports || !(await hasLoopback())
  const addresses = ports ? createPorts() : createAddresses()
  const local = () => (ports ? AT_PORTS : addresses.allocate())
  const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-sandbox-'))
  ends.push(() => rm(directory, { recursive: true, force: true }))

  const agentHost = local()
  const agentUrl = `http://${agentHost}:${PORTS.agent}`
  const barrier = { port: PORTS.barrier, token: secret(random), agent: agentUrl }
  const mode = options.mode ?? 'etcd-1.8'
  const files = {
    agent: join(directory, 'agent.log'),
    config: join(directory, 'agent.yaml'),
    access: join(directory, 'access.log'),
    admin: join(directory, 'admin.log')
  }
  const starting = forkGateways({
    hosts: Array.from({ length: ports ? 1 : options.gateways }, local),
    proxyPort: PORTS.proxy,
    controlPort: PORTS.control,
    adminPort: PORTS.admin,
    adminKey: secret(random),
    barrier,
    workers: options.workers,
    behindMs: options.behindMs,
    accessLog: options.accessLog ? files.access : undefined,
    adminLog: options.accessLog ? files.admin : undefined,
    standalone: mode === 'standalone',
    discovery: mode === 'discovery'
  })
  ends.push(() => starting.then(gateways => gateways.close()).catch(() => {}))

  const kubernetes = await startKubernetes()
  ends.push(() => kubernetes.close())
  const kubeconfigFile = join(directory, 'kubeconfig')
  await kubernetes.writeKubeconfig(kubeconfigFile)
  const controllers = startControllers(kubernetes.store, { hosts: [manifests.HOST] })
  ends.push(async () => controllers.stop())

  const images = {
    [manifests.IMAGE]: {
      command: [process.execPath, APP_MAIN],
      env: {
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(directory, 'compile-cache'),
        AT_SIGTERM: options.atSigterm ?? 'finish',
        ...(options.podRate && { RATE: String(options.podRate) })
      },
      ready: 'message' as const
    }
  }
  const setUpMs = drawn(random, SET_UP)
  let up = false
  const kubelet = startKubelet({
    store: podStore(kubernetes.store),
    host: manifests.HOST,
    images,
    addresses,
    // The first pods wait for nothing, because no request does.
    setUpMs: () => (up ? setUpMs() : 0)
  })
  ends.push(() => kubelet.close())

  const { store } = kubernetes
  store.create('services', manifests.service(mode === 'sync' ? { [UPSTREAM]: SYNCED } : {}))
  store.create('deployments', manifests.deployment(options.replicas, options.preStop?.(agentUrl)))
  await waitFor('the Deployment is available', () => isRolledOut(store), { signal })
  up = true
  const gateways = await starting
  store.create('namespaces', { metadata: { name: manifests.GATEWAY_NAMESPACE } })
  store.create('namespaces', { metadata: { name: manifests.NAMESPACE } })
  for (const gateway of gateways.gateways) register(kubernetes, gateway, ports)
  const syncLags = measureSyncLags(store, gateways)

  const service = { namespace: manifests.NAMESPACE, name: manifests.APP, port: manifests.SERVICE_PORT }
  const slices = storeSlices(store)
  const lag = { ...(options.ownerLag ?? OWNER_LAG) }
  const context = { slices, gateways, service, port: manifests.PORT_NAME, lag, seed: options.seed }
  const owner = await startMode(mode, context)
  ends.push(() => owner.close())
  const listsAll = () => owner.writes.some(({ nodes }) => nodes.length === options.replicas)
  await waitFor('the owner has written the upstream', listsAll, { signal })
  for (const { proxy } of gateways.gateways) {
    await waitFor(`${proxy} routes`, () => answers(proxy), { signal })
  }

  return {
    kubernetes,
    gateways,
    kubelet,
    owner,
    syncLags,
    barrierToken: barrier.token,
    kubeconfigFile,
    agentUrl,
    files,
    delayOwner(ms) {
      lag.minMs = ms
      lag.maxMs = ms
    },
    hasOwnerCaughtUp() {
      const ready = readyNodes(slices.list(), `${service.namespace}/${service.name}`, 1)
      const last = owner.writes.findLast(({ acceptedAt }) => acceptedAt !== undefined)
      const hostsOf = (nodes: readonly { readonly host: string }[]) =>
        nodes
          .map(({ host }) => host)
          .sort()
          .join()
      return hostsOf(last?.nodes ?? []) === hostsOf(ready)
    },
    async startAgent(signal) {
      const agent = await startAgent(
        {
          directory,
          kubernetes: {
            account: await mountAccount(kubernetes, join(directory, 'account'), manifests.GATEWAY_NAMESPACE)
          },
          admin: gateways.admin,
          controlPort: PORTS.control,
          barrier: options.evidence === 'observed' ? undefined : barrier,
          gatewayNamespace: manifests.GATEWAY_NAMESPACE,
          sync: mode === 'sync',
          host: agentHost,
          port: PORTS.agent
        },
        signal
      )
      ends.push(() => agent.close())
      return agent
    },
    startLoad(load) {
      const targets = gateways.gateways.map(({ proxy }) => proxy)
      const running = forkLoad({ ...load, targets, path: '/' })
      ends.push(() => running.close())
      return running
    },
    async rollGateways(load, signal) {
      for (const gateway of gateways.gateways) {
        const { name, proxy, barrier: ready } = gateway
        const others = gateways.gateways.filter(one => one !== gateway)
        store.delete('pods', manifests.GATEWAY_NAMESPACE, name)
        await load.move(others.map(one => one.proxy))
        gateways.run(name, false)
        await waitFor(`${name} has ended`, async () => !(await answers(proxy)), { signal })
        store.delete('pods', manifests.GATEWAY_NAMESPACE, name, { gracePeriodSeconds: 0 })
        gateways.run(name, true)
        const startsAt = now()
        await waitFor(`${name} is ready`, () => answers(`${ready}/v1/barrier/ready`), { signal })
        const isNew = ({ eventAt, acceptedAt }: OwnerWrite) => acceptedAt !== undefined && eventAt > startsAt
        // Its document died with it.
        const synced = () => mode !== 'standalone' || owner.writes.some(isNew)
        await waitFor(`${name} has its document`, synced, { signal })
        register(kubernetes, gateway, ports)
        await load.move(gateways.gateways.map(one => one.proxy))
      }
    },
    close
  }
}

const drawn =
  (random: () => number, { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }) =>
  () =>
    minMs + random() * (maxMs - minMs)

/** 32 hex digits, as the chart of APISIX makes its key. */
const secret = (random: () => number): string =>
  Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('')

function register({ store }: Kubernetes, { name, host }: GatewayAddress, hostNetwork: boolean): void {
  store.create('pods', manifests.gatewayPod(name, hostNetwork))
  const status = manifests.runningStatus(host, new Date(store.now()).toISOString())
  store.patchStatus('pods', manifests.GATEWAY_NAMESPACE, name, status)
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1000) })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
