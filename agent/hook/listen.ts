import type { AddressInfo } from 'node:net'
import type { Server, ServerResponse } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import type { Hono } from 'hono'
import { limitConnections, type ConnectionLimits } from './connections.ts'
import type { Connection } from '../page/address.ts'

export interface ListenLimits {
  readonly connections: ConnectionLimits
  /** Time for the headers, and for the whole request, to arrive, in ms. Neither bounds how long a hook is held. */
  readonly headersMs: number
  readonly requestMs: number
  /** How long an idle connection is kept after its last answer, in ms. */
  readonly idleMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
}

/** For scrapers, probes and the dashboard, in addition to the hooks. */
const OTHER_CONNECTIONS = 256
/** Twice the pods of one host: a kubelet calls `httpGet` hooks from its own address. */
const CONNECTIONS_PER_ADDRESS = 512

export const listenLimits = (maxHooks: number): ListenLimits => ({
  connections: { all: maxHooks + OTHER_CONNECTIONS, perAddress: CONNECTIONS_PER_ADDRESS },
  headersMs: 5000,
  requestMs: 10_000,
  idleMs: 5000,
  maxHeaderBytes: 8192,
  maxHeaders: 64
})

export interface Listening {
  /** The dashboard attaches its upgrade handler here. */
  readonly server: Server
  readonly port: number
  /** Accepts no new connections, ends idle ones, and resolves when the last answer is sent. */
  close(): Promise<void>
  /** Rejects if the server fails later. Never resolves by itself. */
  readonly failed: Promise<never>
}

/**
 * Serves the app.
 *
 * @throws Error with `code` (EADDRINUSE, EACCES, …) when the address cannot be listened on
 */
export async function listen(
  app: Hono<{ Bindings: Connection }>,
  at: { readonly host: string; readonly port: number },
  limits: ListenLimits
): Promise<Listening> {
  const server = createAdaptorServer({
    fetch: app.fetch,
    serverOptions: {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: Math.min(1000, limits.headersMs),
      // A caller whose host died silently must not keep its connection for ever.
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
      // A hook that offers h2c (`curl --http2`) is served as an ordinary HTTP/1.1 request.
      shouldUpgradeCallback: request => request.headers.upgrade?.toLowerCase() === 'websocket'
    }
  }) as Server
  server.maxHeadersCount = limits.maxHeaders
  limitConnections(server, limits.connections)
  endKeptConnections(server)

  const { promise: failed, reject: fail } = Promise.withResolvers<never>()
  // Prevents an unhandled rejection if nothing awaits it; a reader still gets the error.
  failed.catch(() => {})
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(at.port, at.host, resolve)
  await listening
  server.off('error', reject)
  server.on('error', fail)
  return {
    server,
    port: (server.address() as AddressInfo).port,
    failed,
    close: () => closeServer(server)
  }
}

function closeServer(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeIdleConnections()
  return promise
}

/** An answer sent after `close` leaves a keep-alive connection open, which would keep the server from closing. */
function endKeptConnections(server: Server): void {
  server.on('request', (_request, response: ServerResponse) => {
    response.once('close', () => {
      if (!server.listening) setImmediate(() => server.closeIdleConnections())
    })
  })
}
