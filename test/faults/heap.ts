import { once } from 'node:events'
import { WebSocket } from 'ws'
import { eventually } from '../plugin/eventually.ts'

/** The heap of a Node process, read through its inspector. */
export interface Heap {
  /** Makes a full collection, and returns the size of the heap in MB. */
  used(): Promise<number>
  close(): void
}

/** At SIGUSR1, Node opens its inspector on this port. So only one process at a time can be inspected. */
const INSPECTOR = 'http://127.0.0.1:9229/json'

/** @throws Error if the inspector does not open: another process may have the port */
export async function openHeap(pid: number): Promise<Heap> {
  process.kill(pid, 'SIGUSR1')
  let url = ''
  await eventually('the inspector is open', async () => {
    const [target] = (await (await fetch(INSPECTOR)).json()) as { readonly webSocketDebuggerUrl: string }[]
    url = target?.webSocketDebuggerUrl ?? ''
    return url !== ''
  })
  const socket = new WebSocket(url)
  await once(socket, 'open')
  let id = 0
  const call = async (method: string): Promise<unknown> => {
    const mine = ++id
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const listen = (data: Buffer) => {
      const answer = JSON.parse(data.toString()) as { readonly id?: number; readonly result?: unknown }
      if (answer.id === mine) resolve(answer.result)
    }
    socket.on('message', listen)
    socket.send(JSON.stringify({ id: mine, method }))
    return promise.finally(() => socket.off('message', listen))
  }
  return {
    async used() {
      await call('HeapProfiler.collectGarbage')
      const { usedSize } = (await call('Runtime.getHeapUsage')) as { readonly usedSize: number }
      return usedSize / 2 ** 20
    },
    close: () => socket.close()
  }
}
