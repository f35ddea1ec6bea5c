import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { startKubelet, type Kubelet } from '../../../../sandbox/kubelet/kubelet.ts'
import { podStore } from '../../../../sandbox/kubelet/pod-store.ts'
import type { PodRecord } from '../../../../sandbox/kubelet/record.ts'
import { createStore, type Store } from '../../../../sandbox/kubernetes/store.ts'
import { now } from '../../../../sandbox/now.ts'
import { ranMs } from '../../../build/apisix.ts'
import type { Container, Hook, Pod } from '../../../../sandbox/kubernetes/objects.ts'

/** A command that ends at once at TERM. A shell starts faster than Node. */
export const POLITE = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.02; done']
/** A command that only KILL ends. */
export const STUBBORN = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.02; done']

export interface Harness {
  readonly store: Store
  readonly kubelet: Kubelet
  /** Creates a pod and waits until it is Ready. */
  pod(name: string, differs?: PodDraft): Promise<{ pod: Pod; record: PodRecord }>
  /** Deletes the pod and waits until it is gone. */
  end(pod: Pod, gracePeriodSeconds?: number): Promise<void>
  events(reason: string): string[]
  close(): Promise<void>
}

export interface PodDraft {
  readonly command?: readonly string[]
  readonly preStop?: Hook
  readonly graceSeconds?: number
  readonly containers?: readonly Container[]
  readonly env?: Container['env']
}

const app = fileURLToPath(new URL('../../../../sandbox/app/main.ts', import.meta.url))

export function harness(setUpMs?: () => number): Harness {
  const store = createStore()
  const images = { app: { command: [process.execPath, app], ready: 'message' as const } }
  const kubelet = startKubelet({
    store: podStore(store),
    host: 'host-1',
    images,
    ...(setUpMs && { setUpMs })
  })
  const isReady = ({ metadata }: Pod) =>
    store
      .get('pods', metadata.namespace, metadata.name)
      ?.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  return {
    store,
    kubelet,
    async pod(name, { command = POLITE, preStop, graceSeconds = 30, containers, env } = {}) {
      const container = {
        name: 'main',
        command,
        ...(env && { env }),
        ...(preStop && { lifecycle: { preStop } })
      }
      const pod = store.create('pods', {
        metadata: { namespace: 'shop', name },
        spec: {
          nodeName: 'host-1',
          terminationGracePeriodSeconds: graceSeconds,
          containers: containers ?? [container]
        }
      })
      await kubelet.until(`${name} is ready`, () => isReady(pod), 60_000)
      const record = kubelet.records().find(({ uid }) => uid === pod.metadata.uid)
      if (!record) throw new Error(`no record of ${name}`)
      return { pod, record }
    },
    async end(pod, gracePeriodSeconds) {
      const record = kubelet.records().find(({ uid }) => uid === pod.metadata.uid)
      store.delete(
        'pods',
        pod.metadata.namespace,
        pod.metadata.name,
        gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }
      )
      await kubelet.until('the pod is gone', () => record?.goneAt !== undefined, 60_000)
    },
    events: reason =>
      store
        .list('events')
        .filter(event => event.reason === reason)
        .map(event => String(event.note)),
    close: () => kubelet.close()
  }
}

/** Whether the process exists and has not ended. For a zombie it returns false. */
export const alive = (pid: number): boolean => {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z')
}

/** Returns for how long this process could run between two moments by `now()`, in ms. */
export function ranBetween(from: number, to: number): number {
  const origin = now() - performance.now()
  return ranMs(from - origin, to - origin)
}
