import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveAdminApi } from '../../sandbox/apisix/admin-api.ts'
import { createStore, keyOf } from '../../sandbox/apisix/store.ts'
import { createAddresses } from '../../sandbox/kubelet/addresses.ts'
import { startKubernetes } from '../../sandbox/kubernetes/server.ts'
import { startAgent, type TestAgent } from '../build/agent.ts'
import { config } from '../build/config.ts'
import { callHook, type HookReply } from '../build/hook.ts'
import { createPods, type PodOptions, type TestPod } from '../build/pods.ts'
import type { Backend } from './backend.ts'
import { eventually } from './eventually.ts'
import type { Config, Node } from './gateway.ts'
import type { Addresses } from './nginx-conf.ts'

/** A pod in the stand-in for Kubernetes, whose program runs at the same address. */
export interface LivePod extends TestPod {
  readonly backend: Backend
}

/** A real nginx, or a gateway of the sandbox. */
interface Gateway {
  readonly at: Pick<Addresses, 'barrier' | 'token'>
  configured(config: Config): Promise<void>
}

/**
 * The agent with a gateway that runs the plugin. Kubernetes, the Admin API, and APISIX's own modules are stand-ins.
 * No kubelet runs: the test deletes pods, calls their hooks and ends their programs.
 */
export interface WithAgent {
  readonly agent: TestAgent
  /** Makes a pod that is Running and Ready. Resolves when the agent knows the pod. */
  pod(backend: Backend, options?: PodOptions): Promise<LivePod>
  /** Gives these pods to the Admin API and the gateway: as upstream `u`, and on their gRPC ports as `g`. */
  route(pods: readonly LivePod[]): Promise<void>
  /** Deletes the pod and calls its hook. */
  end(pod: LivePod): Promise<HookReply>
  /** Removes the pod's object. */
  gone(pod: LivePod): void
  close(): Promise<void>
}

const KEY = 'edd1'
/** Long enough on a busy machine: in these tests no hook may wait until its deadline. */
const GRACE_SECONDS = 120

export async function withAgent(gateway: Gateway): Promise<WithAgent> {
  const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-with-agent-'))
  const kubernetes = await startKubernetes({ tls: false })
  const kubeconfig = join(directory, 'kubeconfig')
  await kubernetes.writeKubeconfig(kubeconfig)
  const store = createStore()
  const admin = await serveAdminApi({ store, host: '127.0.0.1', port: 0, adminKey: KEY })
  const pods = createPods(kubernetes.store, createAddresses())
  const { at } = gateway
  const tokenFile = join(directory, 'token')
  await writeFile(tokenFile, at.token)
  const settings = config({
    KUBERNETES_KUBECONFIG: kubeconfig,
    APISIX_ADMIN_URL: admin.url,
    APISIX_CONTROL_ENABLED: 'false',
    APISIX_GATEWAYS_STATIC: JSON.stringify([{ name: 'gateway', host: at.barrier.split(':')[0] }]),
    APISIX_BARRIER_PORT: at.barrier.split(':')[1] ?? '',
    APISIX_BARRIER_SCHEME: 'http',
    APISIX_BARRIER_TOKEN_FILE: tokenFile,
    SERVE_HOST: '127.0.0.1',
    SERVE_PORT: '0'
  })
  const agent = await startAgent(settings)
  await eventually('the agent is ready', () => agent.missing().length === 0)
  return {
    agent,
    async pod(backend, options = {}) {
      const { host: ip, port } = backend.node
      const pod = pods.pod(backend.name, { graceSeconds: GRACE_SECONDS, ...options, ip, port })
      await eventually('the agent knows the pod', () => agent.knows(ip))
      return { ...pod, backend }
    },
    async route(list) {
      const upstreams = {
        u: {
          type: 'roundrobin' as const,
          nodes: list.map(({ backend }) => weighted(backend.node))
        },
        g: { scheme: 'grpc' as const, nodes: list.map(({ backend }) => weighted(backend.grpc)) }
      }
      const objects = Object.entries(upstreams).map(([id, upstream]) => ({
        id,
        type: 'roundrobin',
        ...upstream
      }))
      const routes = objects.map(({ id }) => ({ id, uri: `/${id}/*`, upstream_id: id }))
      for (const { id, ...value } of objects)
        store.put(keyOf('upstreams', id), JSON.parse(JSON.stringify({ id, ...value })))
      for (const route of routes) store.put(keyOf('routes', route.id), route)
      await gateway.configured({ ...upstreams, objects: { kinds: { upstreams: objects, routes } } })
    },
    async end(pod) {
      pods.end(pod)
      const query = new URLSearchParams({ namespace: pod.namespace, pod: pod.name }).toString()
      return await callHook({ port: agent.port, from: pod.ip, query })
    },
    gone: pod => pods.gone(pod),
    async close() {
      await agent.close()
      await admin.close()
      store.close()
      await kubernetes.close()
      await rm(directory, { recursive: true, force: true })
    }
  }
}

const weighted = (node: Node) => ({ ...node, weight: 1 })
