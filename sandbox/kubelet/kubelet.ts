import { createAddresses, type Addresses } from './addresses.ts'
import type { Image } from './container.ts'
import type { Pod } from './pod.ts'
import { startPod, type PodWorker } from './pod-worker.ts'
import type { PodRecord } from './record.ts'
import type { PodStore } from './pod-store.ts'

interface KubeletOptions {
  readonly store: PodStore
  /** The kubelet runs pods with this `spec.nodeName`. */
  readonly host: string
  /** The command for each image name; a container with a `command` of its own runs that. */
  readonly images: Readonly<Record<string, Image>>
  readonly addresses?: Addresses
  /** The time from the first sight of a pod to the start of its process, in ms, for images, network and volumes. Default: none. */
  readonly setUpMs?: () => number
}

export interface Kubelet {
  readonly addresses: Addresses
  /** Every pod that has run here, deleted ones too, oldest first. */
  records(): readonly PodRecord[]
  /** Process ids of the containers that run now. */
  pids(): readonly number[]
  /** Acts as after a failed liveness probe: runs the hook without a deletion, and restarts the container. `uid` is the pod's. */
  restart(uid: string, container?: string): Promise<void>
  /** Resolves when `holds` is true, checking it at every change; rejects after `timeoutMs`. */
  until(what: string, holds: () => boolean, timeoutMs: number): Promise<void>
  /** Kills every process it has started, and waits until they are gone. */
  close(): Promise<void>
}

/** Runs the pods of one host as processes of this machine, and ends them as a kubelet does. */
export function startKubelet(options: KubeletOptions): Kubelet {
  const { store, host, images, addresses = createAddresses(), setUpMs = () => 0 } = options
  const workers = new Map<string, PodWorker>()
  const settingUp = new Map<string, NodeJS.Timeout>()
  const waiting = new Set<() => void>()
  let closed = false
  const changed = () => waiting.forEach(look => look())

  const sync = (type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod) => {
    if (closed || pod.spec.nodeName !== host) return
    const { uid, deletionTimestamp } = pod.metadata
    const worker = workers.get(uid)
    if (type === 'DELETED') {
      drop(uid)
      worker?.force()
      void worker?.end(pod)
      return
    }
    if (worker) return void (deletionTimestamp === undefined ? undefined : worker.end(pod))
    if (deletionTimestamp !== undefined) {
      drop(uid)
      return store.remove(pod)
    }
    if (!settingUp.has(uid)) settingUp.set(uid, setTimeout(start, setUpMs(), pod))
  }
  const start = (pod: Pod) => {
    settingUp.delete(pod.metadata.uid)
    workers.set(pod.metadata.uid, startPod(pod, { store, images, ip: addresses.allocate(), changed }))
  }
  const drop = (uid: string) => {
    clearTimeout(settingUp.get(uid))
    settingUp.delete(uid)
  }

  // `sync` runs in a later turn, after the API server has sent the change to its watchers. The start of a hook's process takes
  // milliseconds, which a real kubelet spends on another machine.
  const unsubscribe = store.onChange((type, pod) => void setImmediate(() => sync(type, pod)))
  for (const pod of store.list()) sync('ADDED', pod)

  return {
    addresses,
    records: () => [...workers.values()].map(({ record }) => record),
    pids: () => [...workers.values()].flatMap(worker => worker.pids()),
    async restart(uid, container) {
      const worker = workers.get(uid)
      if (!worker) throw new Error(`no pod ${uid} runs on ${host}`)
      await worker.restart(container)
    },
    until(what, holds, timeoutMs) {
      return new Promise((resolve, reject) => {
        const finish = (end: () => void) => {
          clearTimeout(timer)
          waiting.delete(look)
          end()
        }
        const look = () => void (holds() && finish(resolve))
        const late = () => finish(() => reject(new Error(`not within ${timeoutMs} ms: ${what}`)))
        const timer = setTimeout(late, timeoutMs)
        waiting.add(look)
        look()
      })
    },
    async close() {
      closed = true
      unsubscribe()
      for (const uid of settingUp.keys()) drop(uid)
      await Promise.all([...workers.values()].map(worker => worker.kill()))
    }
  }
}
