import type { Pod } from './pod.ts'

export interface ContainerState {
  readonly name: string
  readonly image: string
  readonly ready: boolean
  readonly restartCount: number
  /** Time of day in ms; `undefined` while the container does not run. */
  readonly startedAt: number | undefined
  readonly exitCode: number | undefined
}

export type PodStatus = Readonly<Record<string, unknown>>

const iso = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** The status that a kubelet would report, as plain JSON. `at`: time of day in ms. */
export function podStatus(
  pod: Pod,
  ip: string,
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed',
  containers: readonly ContainerState[],
  at: number
): PodStatus {
  const ready = phase === 'Running' && containers.every(container => container.ready)
  const condition = (type: string, holds: boolean) => ({
    type,
    status: holds ? 'True' : 'False',
    lastTransitionTime: iso(at)
  })
  return {
    phase,
    hostIP: '127.0.0.1',
    podIP: ip,
    podIPs: [{ ip }],
    qosClass: 'BestEffort',
    ...(containers[0]?.startedAt !== undefined && { startTime: iso(containers[0].startedAt) }),
    conditions: [
      condition('PodScheduled', pod.spec.nodeName !== undefined),
      condition('Initialized', true),
      condition('ContainersReady', ready),
      condition('Ready', ready)
    ],
    containerStatuses: containers.map(({ name, image, ready, restartCount, startedAt, exitCode }) => ({
      name,
      image,
      ready,
      started: startedAt !== undefined,
      containerID: `sandbox://${startedAt ?? ''}`,
      restartCount,
      state:
        exitCode !== undefined
          ? { terminated: { exitCode, finishedAt: iso(at) } }
          : startedAt !== undefined
            ? { running: { startedAt: iso(startedAt) } }
            : { waiting: { reason: 'ContainerCreating' } }
    }))
  }
}
