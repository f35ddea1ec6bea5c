import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveAdminApi } from '../../sandbox/apisix/admin-api.ts'
import type { Api } from '../../sandbox/apisix/api-server.ts'
import { OWNER_AGENT } from '../../sandbox/owner/put.ts'
import { createDiscovery, type Discovery } from '../../sandbox/apisix/discovery.ts'
import { startApisix, type Apisix } from '../../sandbox/apisix/apisix.ts'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import type { Names } from '../../sandbox/apisix/vm/vm.ts'
import type { ApplyDelay } from '../../sandbox/apisix/worker.ts'
import type { Clock } from '../../agent/base/clock.ts'
import { builtFrom, type Ends } from '../../sandbox/ends.ts'
import { createAddresses } from '../../sandbox/kubelet/addresses.ts'
import { startKubernetes, type Kubernetes, type KubernetesOptions } from '../../sandbox/kubernetes/server.ts'
import { gatewayPod, GATEWAY_NAMESPACE, runningStatus } from '../../sandbox/manifests.ts'
import { startAgentService } from './agent-service.ts'
import { startAgent, type AgentDiffers, type TestAgent } from './agent.ts'
import { until } from './apisix.ts'
import { startBackend, type Backend } from './backend.ts'
import { config, type Settings } from './config.ts'
import { createHolders, type Holders } from './held-nodes.ts'
import { callHook, type HookReply } from './hook.ts'
import { createJudge } from './judge.ts'
import { startLoad, type Load } from './load.ts'
import { createPods, type Pods, type TestPod } from './pods.ts'

/** The agent itself, and stand-ins for everything that it calls, over real sockets. */
export interface Rig extends Pods, Holders {
  readonly kubernetes: Kubernetes
  readonly apisix: Apisix
  readonly admin: Api
  /** The gateways' discovery; only with the option `discovery`. */
  readonly discovery: Discovery | undefined
  readonly gateways: readonly Gateway[]
  /** The token that gateways and agent share. */
  readonly barrierToken: string
  /** The agents' settings (see `configFile`). */
  readonly settings: Readonly<Record<string, string>>
  /** The agent that hooks call: the one started last. */
  readonly agent: TestAgent
  startAgent(differs?: Settings): Promise<TestAgent>
  /** Starts an agent. Resolves when it is ready. */
  readyAgent(differs?: Settings): Promise<TestAgent>
  /** Calls the hook at `of` (default: `agent`) as documented: from the pod's address, with its name unless the query has a name. */
  hook(pod: TestPod, query?: string, signal?: AbortSignal, of?: TestAgent): Promise<HookReply>
  /** Ends the pod and calls its hook. */
  drain: Rig['hook']
  /** A real HTTP server at the pod's address. */
  serve(pod: TestPod): Promise<Backend>
  load(perSecond: number): Load
  /** A loopback address that is not in use. */
  address(): string
  /** One more gateway, with its pod. `silent`: it serves, but its Control API and its barrier do not answer. */
  addGateway(options?: { readonly silent?: boolean }): Promise<Gateway>
  /** Reports that the kubelet ends the pod by itself, because the host shuts down, or lacks memory or disk. */
  evicted(pod: TestPod): void
  /** Changes the pod of a gateway. */
  gatewayIs(gateway: Gateway, state: GatewayState): void
  /** Resolves when every gateway has this state for the pod's address. */
  entryIs(state: 'free' | 'draining' | 'sealed', pod: TestPod): Promise<void>
  /** Makes a pod that looks like a gateway at this address. */
  showGateway(name: string, host: string): void
  /** Methods and paths of all writes that the agent sent to the Admin API. */
  readonly writes: readonly string[]
  /** Resolves when every worker of these gateways (default: all that run) has applied everything. */
  applied(gateways?: readonly Gateway[]): Promise<void>
  /**
   * Resolves when every worker of every running gateway has applied everything, and the agent has seen every pod, and so many nodes of
   * this upstream, if one is named.
   */
  settled(upstream?: string, nodes?: number): Promise<void>
  /** See `Judge.overwritten`. */
  overwritten(): readonly string[]
  /** See `Judge.unlisted`. */
  unlisted(): readonly string[]
  /** The violated invariants, in words. */
  violations(): readonly string[]
  close(): Promise<void>
}

/** `gone`: its object is deleted, as by `--force`. `relabelled`: its labels do not make it a gateway any more. */
export type GatewayState = 'ready' | 'not-ready' | 'crashed' | 'terminating' | 'gone' | 'relabelled'

export interface RigOptions {
  /** Default 1. */
  readonly gateways?: number
  /** Default 2. */
  readonly workers?: number
  /** Gateways with the plugin, and an agent that uses it. Default false. */
  readonly barrier?: boolean
  /** Gateways ask the agents for the entries when they start (docs/barrier-api.md). Default false. */
  readonly fetches?: boolean
  /** L4 proxying is on; `unlisted`: at the gateways only. Default false. */
  readonly stream?: boolean | 'unlisted'
  /** API-driven: every gateway has a document of its own, and the Admin API is the first one's. Default false. */
  readonly standalone?: boolean
  /** `discovery.kubernetes` is configured; `apisix.discovery` sets the nodes. Default false. */
  readonly discovery?: boolean
  /** The addresses of node names; the test may change it. Default: this machine's resolver. */
  readonly names?: Names
  readonly applyDelay?: ApplyDelay
  /** Settings in one level: `{ DRAIN_SETTLE: '2s' }`. */
  readonly config?: Readonly<Record<string, string>>
  readonly loop?: AgentDiffers
  /** The clock of each agent that is started. */
  readonly clock?: () => Clock
  readonly kubernetes?: KubernetesOptions
  /** See `createJudge`. */
  readonly excusedMs?: (from: number, to: number) => number
  /** Default true: resolves when the agent is ready. */
  readonly agent?: boolean
}

// Ports that no server uses on all addresses: a listener on 0.0.0.0 blocks the port on every loopback address.
export const PORTS = { proxy: 29081, control: 29091, barrier: 29093, admin: 29183 }
const KEY = 'edd1'
/** How long a starting gateway asks for entries, in ms. */
const FETCH_MS = 10_000
/** Waits that are many seconds in production. */
const QUICK = {
  DRAIN_RESERVE: '500ms',
  DRAIN_SETTLE: '20ms',
  APISIX_ADMIN_TIMEOUT: '8s',
  APISIX_CONTROL_TIMEOUT: '8s',
  SERVE_HOST: '127.0.0.1',
  SERVE_PORT: '0'
}

/** Bounds for tests of a fault. */
export const SHORT = {
  APISIX_ADMIN_TIMEOUT: '400ms',
  APISIX_CONTROL_TIMEOUT: '300ms'
}

export function startRig(options: RigOptions = {}): Promise<Rig> {
  return builtFrom((ends, close) => build(options, ends, close))
}

async function build(options: RigOptions, ends: Ends, close: () => Promise<void>): Promise<Rig> {
  const { barrier = false, stream = false } = options
  const addresses = createAddresses()
  const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-feature-'))
  ends.push(() => rm(directory, { recursive: true, force: true }))
  const kubernetes = await startKubernetes({ tls: false, ...options.kubernetes })
  ends.push(() => kubernetes.close())
  const kubeconfig = join(directory, 'kubeconfig')
  await kubernetes.writeKubeconfig(kubeconfig)

  const running: TestAgent[] = []
  const service = options.fetches
    ? await startAgentService(() => running.filter(agent => !agent.closed).map(({ port }) => port))
    : undefined
  if (service) ends.push(() => service.close())

  const discovery = options.discovery ? createDiscovery() : undefined
  const apisix = await startApisix({
    hosts: Array.from({ length: options.gateways ?? 1 }, () => addresses.allocate()),
    proxyPort: PORTS.proxy,
    controlPort: PORTS.control,
    ...(barrier && { barrierPort: PORTS.barrier, barrierToken: KEY }),
    ...(service && { fetchEntries: { url: service.url, timeoutMs: FETCH_MS } }),
    workers: options.workers ?? 2,
    adminKey: KEY,
    ...(options.standalone && { standalone: true, adminPort: PORTS.admin }),
    ...(discovery && { discovery }),
    stream: stream !== false,
    ...(options.names && { names: options.names }),
    ...(options.applyDelay && { applyDelay: options.applyDelay })
  })
  ends.push(() => apisix.close())
  const { store } = apisix
  const own = apisix.gateways[0]?.admin
  const admin =
    own ??
    (await serveAdminApi({ store, host: '127.0.0.1', port: 0, adminKey: KEY, stream: stream === true }))
  if (!own) ends.push(() => admin.close())
  const writes: string[] = []
  for (const { listener } of [admin, ...apisix.gateways.slice(1).flatMap(gateway => gateway.admin ?? [])]) {
    listener.server.on('request', ({ method, url, headers }) => {
      if (method !== 'GET' && headers['user-agent'] !== OWNER_AGENT) writes.push(`${method} ${url}`)
    })
  }

  const pods = createPods(kubernetes.store, addresses)
  const holders = createHolders(store)
  const judge = createJudge({
    kubernetes: kubernetes.store,
    apisix: store,
    // In standalone mode only the owner writes, and `writes` shows that the agent does not.
    byHand: () => options.standalone === true || holders.byHand(),
    reserveMs: config({ DRAIN_RESERVE: options.config?.['DRAIN_RESERVE'] ?? QUICK.DRAIN_RESERVE }).drain
      .reserveMs,
    ...(options.excusedMs && { excusedMs: options.excusedMs })
  })
  for (const gateway of apisix.gateways) showGateway(kubernetes, gateway)

  const base = {
    ...QUICK,
    KUBERNETES_KUBECONFIG: kubeconfig,
    APISIX_ADMIN_URL: admin.url,
    APISIX_CONTROL_PORT: String(PORTS.control),
    APISIX_GATEWAYS_NAMESPACE: GATEWAY_NAMESPACE,
    ...(barrier && {
      APISIX_BARRIER_PORT: String(PORTS.barrier),
      APISIX_BARRIER_SCHEME: 'http',
      APISIX_BARRIER_TOKEN: KEY
    }),
    ...options.config
  }
  let agent: TestAgent | undefined
  const applied: Rig['applied'] = (gateways = apisix.gateways) =>
    until('every worker has applied everything', () =>
      gateways
        .filter(gateway => gateway.running)
        .every(({ workers }) => workers.every(({ config }) => config.revision === store.revision))
    )
  const settled: Rig['settled'] = async (upstream, nodes) => {
    await applied()
    await until('the agent has seen every pod', () =>
      kubernetes.store
        .list('pods')
        .every(({ status }) => status.podIP === undefined || agent?.knows(status.podIP) !== false)
    )
    if (upstream !== undefined)
      await until('the agent lists them', () => agent?.nodes(`upstreams/${upstream}`) === nodes)
  }

  const rig: Rig = {
    ...pods,
    ...holders,
    kubernetes,
    apisix,
    admin,
    end(pod, graceSeconds) {
      pods.end(pod, graceSeconds)
      judge.ended(pod)
    },
    restarted(pod, restarts, container) {
      judge.restarted(pod)
      pods.restarted(pod, restarts, container)
    },
    evicted(pod) {
      judge.ended(pod)
      pods.condition(pod, 'DisruptionTarget', 'True')
    },
    discovery,
    barrierToken: KEY,
    settings: base,
    gateways: apisix.gateways,
    writes,
    applied,
    settled,
    get agent() {
      if (!agent) throw new Error('no agent was started')
      return agent
    },
    async startAgent(differs = {}) {
      const { APISIX_GATEWAYS_NAMESPACE, ...settings } = { ...base, ...differs }
      const where = 'APISIX_GATEWAYS_STATIC' in settings ? {} : { APISIX_GATEWAYS_NAMESPACE }
      const started = await startAgent(config({ ...settings, ...where }), options.loop, options.clock?.())
      ends.push(() => started.close())
      running.push(started)
      agent = started
      return started
    },
    async readyAgent(differs) {
      const started = await rig.startAgent(differs)
      await until('the agent is ready', () => started.missing().length === 0)
      return started
    },
    drain(pod, ...rest) {
      rig.end(pod)
      return rig.hook(pod, ...rest)
    },
    async hook(pod, query = '', signal, of = rig.agent) {
      const named = new URLSearchParams(query)
      if (!named.has('pod')) {
        named.set('namespace', pod.namespace)
        named.set('pod', pod.name)
      }
      const reply = await callHook({ port: of.port, from: pod.ip, query: named.toString(), signal })
      judge.answered(pod, reply)
      return reply
    },
    async serve(pod) {
      const backend = await startBackend(pod.name, pod.ip, pod.port)
      ends.push(() => backend.close())
      judge.arrivals(pod, backend)
      return backend
    },
    load(perSecond) {
      const load = startLoad(
        apisix.gateways.map(({ urls }) => urls.proxy),
        perSecond
      )
      ends.push(() => load.stop())
      return load
    },
    address: () => addresses.allocate(),
    async addGateway({ silent = false } = {}) {
      const gateway = await apisix.add(addresses.allocate())
      if (silent) await gateway.partition({ control: 'silent', ...(barrier && { barrier: 'silent' }) })
      showGateway(kubernetes, gateway)
      return gateway
    },
    showGateway: (name, host) => showGateway(kubernetes, { name, host }),
    gatewayIs: (gateway, state) => changeGateway(kubernetes, gateway, state),
    entryIs: (state, { name, ip, port }) =>
      until(`the entry of ${name} is ${state} at every gateway`, () =>
        apisix.gateways.every(({ barrier }) => barrier?.entries.look(ip, port) === state)
      ),
    overwritten: () => judge.overwritten(),
    unlisted: () => judge.unlisted(),
    violations: () => judge.violations(),
    close
  }
  if (options.agent !== false) await rig.readyAgent()
  return rig
}

function showGateway(kubernetes: Kubernetes, gateway: Pick<Gateway, 'name' | 'host'>): void {
  kubernetes.store.create('pods', gatewayPod(gateway.name))
  const status = runningStatus(gateway.host, new Date().toISOString())
  kubernetes.store.patchStatus('pods', GATEWAY_NAMESPACE, gateway.name, status)
}

function changeGateway({ store }: Kubernetes, { name }: Gateway, state: GatewayState): void {
  if (state === 'terminating') store.delete('pods', GATEWAY_NAMESPACE, name)
  else if (state === 'gone') store.delete('pods', GATEWAY_NAMESPACE, name, { gracePeriodSeconds: 0 })
  else if (state === 'relabelled')
    store.modify('pods', GATEWAY_NAMESPACE, name, pod => ({
      ...pod,
      metadata: { ...pod.metadata, labels: { quarantine: 'true' } }
    }))
  else {
    const status = state === 'ready' ? 'True' : 'False'
    const waiting = { name: 'apisix', state: { waiting: { reason: 'CrashLoopBackOff' } } }
    store.patchStatus('pods', GATEWAY_NAMESPACE, name, {
      conditions: [{ type: 'Ready', status }],
      ...(state === 'crashed' && { containerStatuses: [waiting] })
    })
  }
}
