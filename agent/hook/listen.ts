import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TlsOptions } from 'node:tls'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { limitConnections } from './connections.ts'
import type { PortPolicy } from './port-policy.ts'
import type { Connection } from '../report/page/guard.ts'

export interface Listening {
  /** The dashboard attaches its upgrade handler here. */
  readonly server: Server
  readonly port: number
  /** Accepts no new connections, ends idle ones, and resolves when the last answer is sent. A second later it ends all. */
  close(): Promise<void>
  /** Rejects if the server fails later. Never resolves by itself. */
  readonly failed: Promise<never>
}

/** How long callers have to take their last answers, in ms. */
const LAST_ANSWERS_MS = 1000

/**
 * Serves an app, or a plain handler, within the limits of `policy`. With `tls` it serves https.
 *
 * @throws Error with `code` (EADDRINUSE, EACCES, …) if the server cannot listen on the address
 */
export async function listen(
  serves: Hono<{ Bindings: Connection }> | RequestListener,
  at: { readonly host: string; readonly port: number },
  policy: PortPolicy,
  tls?: TlsOptions
): Promise<Listening> {
  const handler = typeof serves === 'function' ? serves : getRequestListener(serves.fetch)
  const options: ServerOptions = {
    maxHeaderSize: policy.maxHeaderBytes,
    headersTimeout: policy.headersMs,
    requestTimeout: policy.requestMs,
    keepAliveTimeout: policy.idleMs,
    connectionsCheckingInterval: Math.min(1000, policy.headersMs),
    // A caller whose host died silently must not keep its connection for ever.
    keepAlive: true,
    keepAliveInitialDelay: 15_000,
    // A hook that offers h2c (`curl --http2`) is served as an ordinary HTTP/1.1 request.
    shouldUpgradeCallback: request => request.headers.upgrade?.toLowerCase() === 'websocket'
  }
  const server: Server = tls
    ? createTlsServer({ ...options, ...tls, handshakeTimeout: policy.handshakeMs }, handler)
    : createServer(options, handler)
  server.maxHeadersCount = policy.maxHeaders
  const endAll = limitConnections(server, policy.connections)

  const { promise: failed, reject: fail } = Promise.withResolvers<never>()
  // Without this handler, a failure that no code awaits would end the process. Code that awaits `failed` still gets the error.
  failed.catch(() => {})
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  // Without a host, Node listens at `::`, or at 0.0.0.0 without IPv6. In a flood, the default backlog of 511 drops connections of hooks.
  server.listen({ port: at.port, ...(at.host !== '::' && { host: at.host }), backlog: 4096 }, resolve)
  await listening
  server.off('error', reject)
  server.on('error', fail)
  return {
    server,
    port: (server.address() as AddressInfo).port,
    failed,
    close() {
      const { promise, resolve } = Promise.withResolvers<void>()
      // A server that closes has no limit for the time of a request any more.
      const late = setTimeout(endAll, LAST_ANSWERS_MS)
      server.close(() => (clearTimeout(late), resolve()))
      server.closeIdleConnections()
      return promise
    }
  }
}
