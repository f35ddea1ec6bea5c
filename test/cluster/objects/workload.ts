import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { APP, APP_WITHOUT_SHELL, HELPER } from '../images/names.ts'
import { field, service } from './fields.ts'

export const NAMESPACE = 'shop'
export const APP_PORT = 8080
export const SERVICE_PORT = 80

export const MOUNT = { name: 'apisix-drain', mountPath: '/apisix-drain' }

/** The preStop hook of the pods. `bare` does nothing; `apisix-drain-hook` is for images without a shell. */
export type Arm = 'none' | 'bare' | 'sleep' | 'apisix-drain' | 'apisix-drain-hook'

/** The hook that users copy from the README. */
const HOOK = hookOf(readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8'))

/** The addition of each arm to the app's container. */
const CONTAINERS: Readonly<Record<Arm, object>> = {
  none: {},
  bare: { lifecycle: { preStop: { exec: { command: ['test', 'nothing'] } } } },
  sleep: { lifecycle: { preStop: { exec: { command: ['sleep', '5'] } } } },
  'apisix-drain': { lifecycle: HOOK },
  'apisix-drain-hook': {
    image: APP_WITHOUT_SHELL,
    lifecycle: { preStop: { exec: { command: ['/apisix-drain/apisix-drain-hook'] } } },
    volumeMounts: [MOUNT]
  }
}

/** The ways of docs/hooks.md to bring the helper into the pod. */
const HELPER_FROM = {
  'init container': {
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
  },
  'image volume': { volumes: [{ name: 'apisix-drain', image: { reference: HELPER, pullPolicy: 'Never' } }] }
}

export interface WorkloadOptions {
  readonly name: string
  readonly arm: Arm
  readonly replicas: number
  readonly kind?: 'Deployment' | 'StatefulSet'
  readonly graceSeconds?: number
  /** The Deployment's strategy; default: that of Kubernetes, 25 % surge and 25 % unavailable. */
  readonly strategy?: object
  /**
   * What the app does at SIGTERM: `exit` drops accepted requests, as programs without a handler do; `finish` (default) answers them;
   * a duration is how long it ignores the signal.
   */
  readonly atTerm?: string
  /** The time from the start of the app until it listens. */
  readonly startupMs?: number
  /** For the arm `apisix-drain-hook`: how the helper gets into the pod; default: an init container. */
  readonly helperFrom?: keyof typeof HELPER_FROM
  /** Runs the app as a restartable init container. The pod's ordinary container then gets no requests. */
  readonly asSidecar?: boolean
  /** More fields of the app's container. */
  readonly container?: object
  /** More volumes. */
  readonly volumes?: readonly object[]
  /** More fields of the pod. */
  readonly pod?: object
  /** More containers. */
  readonly beside?: readonly object[]
}

const labelsOf = (name: string) => ({ app: name })

export const serviceOf = ({ name }: WorkloadOptions): object =>
  service(NAMESPACE, name, labelsOf(name), [{ port: SERVICE_PORT, targetPort: APP_PORT }])

/** The app of `test/cluster/app`: it stops listening at SIGTERM, so every request that comes too late fails visibly. */
export function workload(options: WorkloadOptions): object {
  const { name, arm, replicas, kind = 'Deployment', strategy } = options
  const { asSidecar = false, helperFrom = 'init container' } = options
  const labels = labelsOf(name)
  const app = appContainer(arm, options)
  const helper = arm === 'apisix-drain-hook' ? HELPER_FROM[helperFrom] : undefined
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
          ...(asSidecar
            ? { initContainers: [{ ...app, restartPolicy: 'Always' }], containers: [other] }
            : { containers: [app, ...(options.beside ?? [])] }),
          ...helper,
          volumes: [...(helper?.volumes ?? []), ...(options.volumes ?? [])],
          ...options.pod
        }
      }
    }
  }
}

/** A container that ends at once at SIGTERM. */
const other = {
  name: 'other',
  image: APP,
  imagePullPolicy: 'Never',
  env: [
    { name: 'PORT', value: '8081' },
    { name: 'AT_TERM', value: 'exit' }
  ],
  resources: { requests: { cpu: '100m' } }
}

const appContainer = (
  arm: Arm,
  { atTerm = 'finish', startupMs = 0, container }: WorkloadOptions
): object => ({
  name: 'app',
  image: APP,
  imagePullPolicy: 'Never',
  ports: [{ containerPort: APP_PORT }],
  env: [
    field('POD_NAME', 'metadata.name'),
    field('POD_NAMESPACE', 'metadata.namespace'),
    field('POD_UID', 'metadata.uid'),
    field('POD_IP', 'status.podIP'),
    { name: 'AT_TERM', value: atTerm },
    { name: 'STARTUP_MS', value: String(startupMs) }
  ],
  readinessProbe: { httpGet: { path: '/', port: APP_PORT }, periodSeconds: 1 },
  resources: { requests: { cpu: '100m' } },
  ...CONTAINERS[arm],
  ...container
})

/** Returns the `lifecycle` of the first example on the page. The app's container sets the variables that the hook needs. */
function hookOf(page: string): object {
  const [, example = ''] = /```yaml\n(env:.*?\nlifecycle:.*?)```/s.exec(page) ?? []
  const { lifecycle } = parse(example) as { lifecycle: object }
  return lifecycle
}
