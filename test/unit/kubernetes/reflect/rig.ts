import { pino } from 'pino'
import {
  startCluster,
  type Cluster,
  type ClusterOptions
} from '../../../../agent/kubernetes/facts/cluster.ts'
import type { Credentials } from '../../../../agent/kubernetes/transport/credentials.ts'
import type { Part, PartName } from '../../../../agent/kubernetes/reflect/watch-status.ts'
import {
  startKubernetes,
  type Kubernetes,
  type KubernetesOptions
} from '../../../../sandbox/kubernetes/server.ts'
import { until } from '../../../build/apisix.ts'
import { countingClock, type CountingClock } from '../../../build/counting-clock.ts'

export { until }

export const credentialsOf = (kubernetes: Kubernetes, token = () => kubernetes.token): Credentials => ({
  origin: kubernetes.url,
  tls: () => Promise.resolve(kubernetes.ca === undefined ? {} : { ca: kubernetes.ca }),
  headers: () => Promise.resolve({ authorization: `Bearer ${token()}` }),
  refused: () => {}
})

export interface Rig {
  readonly kubernetes: Kubernetes
  readonly cluster: Cluster
  readonly clock: CountingClock
  /** How often the cluster has reported a change. */
  readonly changes: () => number
  /** Log lines, parsed. */
  readonly logged: readonly Record<string, unknown>[]
  readonly part: (name: PartName) => Part
  close(): Promise<void>
}

/** Starts the stand-in for the API server, and a cluster that watches it. Resolves once both run. */
export async function startRig(
  options: Partial<Omit<ClusterOptions, 'credentials'>> & {
    server?: KubernetesOptions
    before?: (kubernetes: Kubernetes) => void
    credentials?: (kubernetes: Kubernetes) => Credentials
  } = {}
): Promise<Rig> {
  const { server, before, credentials = (k: Kubernetes) => credentialsOf(k), ...differs } = options
  const kubernetes = await startKubernetes({ bookmarkEveryMs: 50, ...server })
  before?.(kubernetes)
  const clock = countingClock()
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  let changes = 0
  const cluster = startCluster({
    credentials: credentials(kubernetes),
    gatewaySelector: { namespace: 'apisix', labelSelector: 'app=apisix' },
    clock,
    log,
    ...differs
  })
  cluster.onChange(() => (changes += 1))
  return {
    kubernetes,
    cluster,
    clock,
    changes: () => changes,
    logged,
    part: name => cluster.parts().find(part => part.name === name)!,
    async close() {
      await cluster.stop()
      await kubernetes.close()
    }
  }
}

/** Waits until all three watches are live. */
export const live = (rig: Rig) =>
  until('live', () => rig.cluster.parts().every(part => part.state === 'live'), 5_000)

interface PodDraft {
  readonly namespace?: string
  readonly ip?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** Creates a pod that runs and is ready; returns its uid. */
export function createPod(
  { store }: Kubernetes,
  name: string,
  { namespace = 'shop', ip = '10.0.0.1', labels = { app: 'web' } }: PodDraft = {}
): string {
  const { uid } = store.create('pods', {
    metadata: { name, namespace, labels },
    spec: {
      nodeName: 'host-1',
      containers: [{ name: 'app', image: 'app', ports: [{ containerPort: 8080 }] }]
    }
  }).metadata
  store.patchStatus('pods', namespace, name, {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [{ type: 'Ready', status: 'True' }]
  })
  return uid
}
