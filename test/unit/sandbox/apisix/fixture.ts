import { createServer, request, type Agent, type RequestListener, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { serveAdminApi } from '../../../../sandbox/apisix/admin-api.ts'
import type { Api } from '../../../../sandbox/apisix/api-server.ts'
import type { AccessFact } from '../../../../sandbox/apisix/access-log.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../../../sandbox/apisix/gateway.ts'
import { createStore, type Store } from '../../../../sandbox/apisix/store.ts'
import { until } from '../../../build/apisix.ts'

export const KEY = 'the-key-of-this-test'
export const TOKEN = 'the-token-of-this-test'

/** Everything that a test has opened. At its end, all of it is closed in reverse order. */
export interface Opened {
  add<T extends { close(): unknown }>(what: T): T
  close(): Promise<void>
}

export function opened(): Opened {
  const all: { close(): unknown }[] = []
  return {
    add: what => {
      all.push(what)
      return what
    },
    close: async () => {
      for (const one of all.splice(0).toReversed()) await one.close()
    }
  }
}

/** Starts an Admin API with an empty store for each test of the suite. */
export function adminOfEachTest() {
  let store: Store
  let api: Api

  beforeEach(async () => {
    store = createStore()
    api = await serveAdminApi({ store, host: '127.0.0.1', port: 0, adminKey: KEY })
  })
  afterEach(async () => {
    await api.close()
    store.close()
  })

  return {
    get store() {
      return store
    },
    get api() {
      return api
    },
    ask: (
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = {}
    ): Promise<Reply> =>
      send(`${api.url}/apisix/admin/${path}`, {
        method,
        headers: { 'x-api-key': KEY, ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
  }
}

export interface TestNode {
  /** Such as `127.0.0.1:1234`. */
  readonly address: string
  readonly port: number
  /** `METHOD path` of each request that reached the node. */
  readonly seen: string[]
  close(): Promise<void>
}

const closeAll = async (server: Server | TcpServer, sockets: ReadonlySet<Socket>): Promise<void> => {
  const closed = new Promise(resolve => server.close(resolve))
  for (const socket of sockets) socket.destroy()
  await closed
}

const track = (server: Server | TcpServer): Set<Socket> => {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

/** Starts an upstream node that answers with `handler`; default: 200 and its own address. */
export async function httpNode(
  handler?: RequestListener,
  host = '127.0.0.1'
): Promise<TestNode & { server: Server }> {
  const seen: string[] = []
  const server = createServer((incoming, response) => {
    seen.push(`${incoming.method} ${incoming.url}`)
    if (handler) return handler(incoming, response)
    incoming.resume()
    response.end(address)
  })
  const sockets = track(server)
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const address = `${host}:${port}`
  return { address, port, seen, server, close: () => closeAll(server, sockets) }
}

/** Starts a node that reads the bytes of each request and then runs `act` on the connection. */
export async function rawNode(act: (socket: Socket, requests: number) => void): Promise<TestNode> {
  const seen: string[] = []
  const server = createTcpServer(socket => {
    let requests = 0
    socket.on('error', () => {})
    socket.on('data', chunk => {
      const [head = ''] = chunk.toString('latin1').split(' HTTP/1.1')
      seen.push(head)
      requests += 1
      act(socket, requests)
    })
  })
  const sockets = track(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { address: `127.0.0.1:${port}`, port, seen, close: () => closeAll(server, sockets) }
}

/** Returns an address at which nothing listens. */
export async function deadAddress(): Promise<string> {
  const node = await httpNode()
  await node.close()
  return node.address
}

export interface Reply {
  readonly status: number
  readonly body: string
  /** The body ended early. */
  readonly truncated: boolean
}

/** Sends one request. Rejects if the connection breaks before an answer. */
export function send(
  url: string,
  options: { method?: string; body?: string; agent?: Agent; headers?: Record<string, string> } = {}
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method: options.method ?? 'GET',
        agent: options.agent ?? false,
        headers: {
          ...options.headers,
          ...(options.body === undefined ? {} : { 'content-length': options.body.length })
        }
      },
      response => {
        let body = ''
        response.on('data', (chunk: Buffer) => (body += chunk.toString()))
        response.on('error', () => {})
        response.once('close', () =>
          resolve({ status: response.statusCode ?? 0, body, truncated: !response.complete })
        )
      }
    )
    outgoing.once('error', reject)
    outgoing.end(options.body)
  })
}

export interface TestGateway {
  readonly store: Store
  readonly gateway: Gateway
  readonly facts: AccessFact[]
  /** Calls the Admin API. Resolves with the answer. */
  admin(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Writes an upstream `u` with these nodes, and a route `/*` to it. Waits until all workers have both. */
  route(nodes: unknown, extra?: Record<string, unknown>): Promise<void>
  barrier(
    method: string,
    path: string,
    body?: unknown
  ): Promise<{ status: number; body: Record<string, unknown> }>
  close(): Promise<void>
}

export async function testGateway(options: Partial<GatewayOptions> = {}): Promise<TestGateway> {
  const store = options.store ?? createStore()
  const gateway = await startGateway({
    store,
    name: 'apisix-0',
    host: '127.0.0.1',
    proxyPort: 0,
    adminPort: 0,
    controlPort: 0,
    barrierPort: 0,
    workers: 2,
    adminKey: KEY,
    barrierToken: TOKEN,
    applyDelay: () => 0,
    ...options
  })
  const facts: AccessFact[] = []
  gateway.onAccess(fact => facts.push(fact))
  const self: TestGateway = {
    store,
    gateway,
    facts,
    admin: (method, path, body, headers) =>
      send(`${gateway.urls.admin}/apisix/admin/${path}`, {
        method,
        headers: { 'x-api-key': KEY, ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      }),
    route: async (nodes, extra = {}) => {
      await self.admin('PUT', 'upstreams/u', { type: 'roundrobin', nodes, ...extra })
      await self.admin('PUT', 'routes/r', { uri: '/*', upstream_id: 'u' })
      await until('applied', () => gateway.workers.every(({ config }) => config.revision === store.revision))
    },
    barrier: async (method, path, body) => {
      const answer = await fetch(`${gateway.urls.barrier}/v1/barrier/${path}`, {
        method,
        headers: { authorization: `Bearer ${TOKEN}`, connection: 'close' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    },
    close: async () => {
      await gateway.close()
      store.close()
    }
  }
  return self
}
