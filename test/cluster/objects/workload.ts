import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { APP, APP_WITHOUT_SHELL, HELPER } from '../images/names.ts'
import { field, service } from './fields.ts'

export const NAMESPACE = 'shop'
export const APP_PORT = 8080
export const SERVICE_PORT = 80

const MOUNT = { name: 'apisix-drain', mountPath: '/apisix-drain' }

/** What is done at the end of a pod; the last is for images without a shell. */
export type Arm = 'none' | 'sleep' | 'apisix-drain' | 'apisix-drain-hook'

/** The hook that docs/install.md has people copy. */
const HOOK = hookOf(readFileSync(join(import.meta.dirname, '../../../docs/install.md'), 'utf8'))

/** What each adds to the app's container. */
const CONTAINERS: Readonly<Record<Arm, object>> = {
  none: {},
  sleep: { lifecycle: { preStop: { exec: { command: ['sleep', '5'] } } } },
  'apisix-drain': { lifecycle: HOOK },
  'apisix-drain-hook': {
    image: APP_WITHOUT_SHELL,
    lifecycle: { preStop: { exec: { command: ['/apisix-drain/apisix-drain-hook'] } } },
    volumeMounts: [MOUNT]
  }
}

/** What the helper adds to the pod, as docs/hooks.md has it. */
const HELPER_POD = {
  initContainers: [
    {
      name: 'apisix-drain-hook',
      image: HELPER,
      imagePullPolicy: 'Never',
      command: ['/apisix-drain-hook', 'install', '/apisix-drain'],
      volumeMounts: [MOUNT]
    }
  ],
  volumes: [{ name: 'apisix-drain', emptyDir: { sizeLimit: '8Mi' } }]
}

export interface WorkloadOptions {
  readonly name: string
  readonly arm: Arm
  readonly replicas: number
  readonly kind?: 'Deployment' | 'StatefulSet'
  readonly graceSeconds?: number
  /** The Deployment's; 25 % and 25 % where it is left out, as with Kubernetes. */
  readonly strategy?: object
  /** The app drops what it has accepted at SIGTERM, as programs do that know nothing of it. */
  readonly exitsAtTerm?: boolean
  /** From the start of the app until it listens. */
  readonly startupMs?: number
  /** More of its only container. */
  readonly container?: object
  /** More of the pod. */
  readonly pod?: object
  /** More containers. */
  readonly beside?: readonly object[]
}

const labelsOf = (name: string) => ({ app: name })

export const serviceOf = ({ name }: WorkloadOptions): object =>
  service(NAMESPACE, name, labelsOf(name), [{ port: SERVICE_PORT, targetPort: APP_PORT }])

/** The sandbox's app: it stops listening at SIGTERM, and so shows every request that comes too late. */
export function workload(options: WorkloadOptions): object {
  const { name, arm, replicas, kind = 'Deployment', strategy } = options
  const labels = labelsOf(name)
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { namespace: NAMESPACE, name, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      ...(kind === 'StatefulSet' && { serviceName: name, podManagementPolicy: 'Parallel' }),
      ...(strategy && { strategy }),
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: options.graceSeconds ?? 30,
          containers: [appContainer(arm, options), ...(options.beside ?? [])],
          ...(arm === 'apisix-drain-hook' && HELPER_POD),
          ...options.pod
        }
      }
    }
  }
}

const appContainer = (arm: Arm, { exitsAtTerm, startupMs = 0, container }: WorkloadOptions): object => ({
  name: 'app',
  image: APP,
  imagePullPolicy: 'Never',
  ports: [{ containerPort: APP_PORT }],
  env: [
    field('POD_NAME', 'metadata.name'),
    field('POD_IP', 'status.podIP'),
    { name: 'AT_TERM', value: exitsAtTerm ? 'exit' : 'finish' },
    { name: 'STARTUP_MS', value: String(startupMs) }
  ],
  readinessProbe: { httpGet: { path: '/', port: APP_PORT }, periodSeconds: 1 },
  resources: { requests: { cpu: '20m' } },
  ...CONTAINERS[arm],
  ...container
})

/** The first example of a `lifecycle` on the page. */
function hookOf(page: string): object {
  const [, example = ''] = /```yaml\n(lifecycle:.*?)```/s.exec(page) ?? []
  const { lifecycle } = parse(example) as { lifecycle: object }
  return lifecycle
}
