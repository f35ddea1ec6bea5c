import { request } from 'node:https'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import type { ControlPlane } from './control-plane.ts'

/** The fields of a Kubernetes object that a watch reads. */
export interface Watched {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string }
}

export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: T
}

export interface Watching {
  stop(): Promise<void>
}

/** The pause before a new watch, in ms. */
const AGAIN_MS = 200

/**
 * Reports every present object as added, and then every change of the collection, until it is stopped. It reports changes
 * during a restart of the API server after the restart.
 */
export function watch<T extends Watched>(
  controlPlane: ControlPlane,
  path: string,
  tell: (event: WatchEvent<T>) => void
): Watching {
  const stopped = new AbortController()
  let known = new Map<string, T>()
  const note = (event: WatchEvent<T>) => {
    if (event.type === 'DELETED') known.delete(event.object.metadata.uid)
    else known.set(event.object.metadata.uid, event.object)
    tell(event)
  }
  const round = async () => {
    const { json, status } = await controlPlane.call('GET', path)
    if (status !== 200) throw new Error(`GET ${path}: ${status}`)
    const { items, metadata } = json as { items: T[]; metadata: { resourceVersion: string } }
    const listed = new Map(items.map(object => [object.metadata.uid, object]))
    for (const [uid, object] of known) if (!listed.has(uid)) tell({ type: 'DELETED', object })
    for (const [uid, object] of listed) {
      const old = known.get(uid)
      if (old?.metadata.resourceVersion !== object.metadata.resourceVersion)
        tell({ type: old ? 'MODIFIED' : 'ADDED', object })
    }
    known = listed
    const query = `watch=true&resourceVersion=${metadata.resourceVersion}`
    await stream(controlPlane, `${path}?${query}`, stopped.signal, note)
  }
  const running = (async () => {
    while (!stopped.signal.aborted) {
      await round().catch(() => {}) // the next round reads the missed changes
      await wait(AGAIN_MS, undefined, { signal: stopped.signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopped.abort()
      await running
    }
  }
}

async function stream<T extends Watched>(
  { url, ca, token }: ControlPlane,
  path: string,
  signal: AbortSignal,
  note: (event: WatchEvent<T>) => void
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const headers = { authorization: `Bearer ${token}` }
  const asked = request(`${url}${path}`, { ca, headers, signal }, response => {
    const lines = createInterface({ input: response })
    const read = async () => {
      for await (const line of lines) {
        const event = JSON.parse(line) as WatchEvent<T> | { readonly type: 'ERROR' }
        if (event.type === 'ERROR') return
        note(event)
      }
    }
    response.once('error', reject)
    read().then(resolve, reject)
  })
  asked.on('error', reject)
  asked.end()
  await promise
}
