import type { Manifest } from './helm.ts'

export interface Container {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly command?: readonly string[]
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly volumeMounts: readonly {
    readonly name: string
    readonly mountPath: string
    readonly readOnly?: boolean
  }[]
  readonly lifecycle: unknown
  readonly readinessProbe: unknown
  readonly livenessProbe: unknown
  readonly startupProbe: unknown
  readonly terminationMessagePolicy: string
}

export interface PodSpec {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly { readonly name: string; readonly [source: string]: unknown }[]
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken: boolean
  readonly enableServiceLinks: boolean
  readonly terminationGracePeriodSeconds?: number
  readonly affinity?: unknown
  readonly [field: string]: unknown
}

export interface Workload {
  readonly replicas: number
  readonly strategy: unknown
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> }
  readonly template: {
    readonly metadata: {
      readonly labels: Readonly<Record<string, string>>
      readonly annotations: Readonly<Record<string, string>>
    }
    readonly spec: PodSpec
  }
}

/** Returns the spec of a pod, or of the pod template of a workload. */
export const podOf = (manifest: Manifest): PodSpec =>
  manifest.kind === 'Pod' ? (manifest['spec'] as PodSpec) : workloadOf(manifest).template.spec

export const workloadOf = (manifest: Manifest): Workload => manifest['spec'] as Workload

export function firstContainer(pod: PodSpec): Container {
  const [container] = pod.containers
  if (!container) throw new Error('the pod has no container')
  return container
}
