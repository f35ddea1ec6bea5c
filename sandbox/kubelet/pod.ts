import type { Hook } from '../kubernetes/objects.ts'

/** The part of a Pod object that the kubelet stand-in reads. Plain JSON, as the API server stores it. */
export interface Pod {
  readonly metadata: {
    readonly namespace?: string
    readonly name: string
    readonly uid: string
    readonly deletionTimestamp?: string
    readonly deletionGracePeriodSeconds?: number
  }
  readonly spec: {
    readonly nodeName?: string
    readonly terminationGracePeriodSeconds?: number
    readonly containers: readonly ContainerSpec[]
  }
}

export interface ContainerSpec {
  readonly name: string
  readonly image?: string
  /** Replaces the image's command. The container is then ready as soon as it runs. */
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly EnvVar[]
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[]
  readonly lifecycle?: { readonly preStop?: Hook }
}

interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } }
}

const DEFAULT_GRACE_SECONDS = 30

export const graceSeconds = (pod: Pod): number =>
  pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS

/**
 * A container's environment: that of its spec, and otherwise only the PATH and HOSTNAME that a real container
 * has. POD_IP and the like come from the downward API (`fieldRef`) or not at all.
 */
export function containerEnv(pod: Pod, spec: ContainerSpec, ip: string): Record<string, string> {
  const fields: Record<string, string> = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace ?? 'default',
    'metadata.uid': pod.metadata.uid,
    'spec.nodeName': pod.spec.nodeName ?? '',
    'status.podIP': ip,
    'status.podIPs': ip
  }
  return {
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    HOSTNAME: pod.metadata.name,
    ...Object.fromEntries(
      (spec.env ?? []).map(({ name, value, valueFrom }) => [
        name,
        value ?? fields[valueFrom?.fieldRef?.fieldPath ?? ''] ?? ''
      ])
    )
  }
}
