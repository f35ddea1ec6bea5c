import type { ControlPlane } from './control-plane.ts'
import { watch, type Watched } from './watch.ts'

interface Pod extends Watched {
  readonly metadata: Watched['metadata'] & {
    readonly name: string
    readonly namespace: string
    readonly labels?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
  }
  readonly status: {
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

interface ContainerStatus {
  readonly name: string
  readonly restartCount: number
  readonly state?: { readonly terminated?: { readonly exitCode: number } }
}

/** The observed life of one pod. Times in ms since the epoch; `undefined`: not seen. */
export interface PodRecord {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  readonly app: string | undefined
  address?: string
  readyAt?: number
  isReady: boolean
  restarts: number
  /** The exit codes of its containers that have ended, by name. */
  readonly codes: Map<string, number>
  /** When the pod was first seen to terminate. */
  endingAt?: number
  goneAt?: number
}

export interface PodRecords {
  /** Returns every pod of this app (label `app` or `app.kubernetes.io/name`) ever seen, the first seen first. */
  of(app: string): readonly PodRecord[]
  stop(): Promise<void>
}

/** Records when pods begin and end, as a client of the API server sees it. */
export function recordPods(controlPlane: ControlPlane): PodRecords {
  const records = new Map<string, PodRecord>()
  const watching = watch<Pod>(controlPlane, '/api/v1/pods', ({ type, object }) => {
    const { uid, name, namespace, labels, deletionTimestamp } = object.metadata
    const record: PodRecord = records.get(uid) ?? {
      uid,
      name,
      namespace,
      app: labels?.['app'] ?? labels?.['app.kubernetes.io/name'],
      isReady: false,
      restarts: 0,
      codes: new Map()
    }
    records.set(uid, record)
    const now = Date.now()
    const { podIP, conditions, containerStatuses = [], initContainerStatuses = [] } = object.status
    if (podIP !== undefined) record.address = podIP
    record.isReady = conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
    record.restarts = Math.max(record.restarts, ...containerStatuses.map(status => status.restartCount))
    for (const { name, state } of [...containerStatuses, ...initContainerStatuses])
      if (state?.terminated) record.codes.set(name, state.terminated.exitCode)
    if (record.isReady) record.readyAt ??= now
    if (deletionTimestamp !== undefined) record.endingAt ??= now
    if (type === 'DELETED') record.goneAt = now
  })
  return {
    of: app => [...records.values()].filter(record => record.app === app),
    stop: () => watching.stop()
  }
}
