import { APP } from '../images/names.ts'
import { field, service } from './fields.ts'

export const NAMESPACE = 'shop'
export const APP_PORT = 8080
export const SERVICE_PORT = 80

/** What is done at the end of a pod. */
export type Arm = 'none' | 'sleep' | 'apisix-drain'

/** As README.md has it. */
const HOOK =
  'curl -fsS --connect-timeout 2 -m 24 -X POST http://apisix-drain.apisix:8080/v1/prestop || sleep 5'

const LIFECYCLES: Readonly<Record<Arm, object>> = {
  none: {},
  sleep: { lifecycle: { preStop: { exec: { command: ['sleep', '5'] } } } },
  'apisix-drain': { lifecycle: { preStop: { exec: { command: ['sh', '-c', HOOK] } } } }
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
  ...LIFECYCLES[arm],
  ...container
})
