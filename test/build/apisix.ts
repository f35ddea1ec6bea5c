import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { pino } from 'pino'

import { createAdminApi, type AdminApi } from '../../agent/gateway/apisix/admin-api.ts'
import { serveAdminApi } from '../../sandbox/apisix/admin-api.ts'
import type { Json, JsonObject } from '../../sandbox/apisix/json.ts'
import { createStore, keyOf } from '../../sandbox/apisix/store.ts'
import { measureStalls, stalledMs } from './stall.ts'

measureStalls()

export const silent = pino({ level: 'silent' })

/** Waits for a condition; the bound counts only time in which this process runs. Fails with the name of the condition, made at that moment. */
export async function until(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  withinMs = 20_000
): Promise<void> {
  const began = performance.now()
  for (;;) {
    const held = holds()
    if (typeof held === 'boolean' ? held : await held) return
    if (ranMs(began) > withinMs)
      throw new Error(`not in ${withinMs} ms: ${typeof what === 'string' ? what : what()}`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

/** The time since `from` (monotonic clock) in which this process could run, in ms. Upper bounds use it: load does not change it. */
export function ranMs(from: number, to = performance.now()): number {
  return to - from - stalledMs(from, to)
}

/** The stand-in's store behind its Admin API on its own port, and the agent's client for it. */
export async function startAdmin(
  options: { stream?: boolean; timeoutMs?: number; pageSize?: number; key?: () => string } = {}
) {
  const store = createStore({ revision: 100 })
  const api = await serveAdminApi({
    store,
    host: '127.0.0.1',
    port: 0,
    adminKey: 'secret-key',
    stream: options.stream ?? true
  })
  const requests: string[] = []
  api.listener.server.on('request', request => requests.push(`${request.method} ${request.url}`))
  const client: AdminApi = createAdminApi({
    url: api.url,
    key: options.key ?? (() => 'secret-key'),
    timeoutMs: options.timeoutMs ?? 20_000,
    pageSize: options.pageSize ?? 500
  })
  return {
    store,
    faults: api.faults,
    listener: api.listener,
    client,
    url: api.url,
    /** `GET /apisix/admin/…`, in the order of arrival. */
    requests,
    writes: () => requests.filter(r => !r.startsWith('GET')),
    /** Stores an object as another writer would, whatever the agent does. */
    put: (resource: string, id: string, value: JsonObject) =>
      store.put(keyOf(resource, id), { id, ...value }),
    remove: (resource: string, id: string) => store.delete(keyOf(resource, id)),
    value: (resource: string, id: string): JsonObject | undefined => store.get(keyOf(resource, id))?.value,
    nodes: (id: string): Json | undefined => store.get(keyOf('upstreams', id))?.value.nodes,
    async close() {
      client.close()
      await api.close()
      store.close()
    }
  }
}

/** A server that sends any bytes, for answers that no correct server gives. */
export async function startRaw(listener: RequestListener) {
  const server = createServer(listener)
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', socket => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    connections: () => connections,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    }
  }
}
