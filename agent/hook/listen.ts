import {
  createServer,
  type RequestListener,
  type Server,
  type ServerOptions,
  type IncomingMessage
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { normaliseAddress, type Connection } from '../report/page/guard.ts'
import { existsSync, readFileSync } from 'node:fs'

export interface Listening {
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
    keepAliveInitialDelay: 15_000
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

/** All connections from one address. */
interface Caller {
  readonly address: string
  open: number
  /** Connections without a complete request since their last answer; the connection that has waited longest is first. */
  readonly waiting: Set<string>
}

interface Open {
  readonly socket: Socket
  readonly caller: Caller
}

/**
 * Limits waiting connections: those that send no request, or half of a request, by mistake or to keep callers out. A hook sends its
 * request at once. This code never closes a connection whose request is being answered; `HookSlots` limits those. If the port
 * is full, the address with the most waiting connections loses one connection. So a flood from a few addresses costs only its own
 * connections, even if this process is slow.
 *
 * @returns a function that destroys every connection, also one whose TLS handshake has not ended
 */
function limitConnections(server: Server, limits: ConnectionLimits): () => void {
  /** The key is the caller's address and port. The socket cannot be the key: with TLS, a request has another socket than its connection. */
  const open = new Map<string, Open>()
  const callers = new Map<string, Caller>()

  const forget = (key: string) => {
    const caller = open.get(key)?.caller
    if (!caller) return
    open.delete(key)
    caller.waiting.delete(key)
    caller.open -= 1
    if (caller.open === 0) callers.delete(caller.address)
  }
  /** Ends the connection of this caller that has waited longest. Returns false if none of the caller's connections waits. */
  const endOne = (caller: Caller | undefined): boolean => {
    const [key] = caller?.waiting ?? []
    const socket = key === undefined ? undefined : open.get(key)?.socket
    if (key === undefined || !socket) return false
    // Forgotten now, not at its `close` event, because many connections may arrive in the same turn.
    forget(key)
    socket.destroy()
    return true
  }
  const mostWaiting = (): Caller | undefined => {
    let most: Caller | undefined
    for (const caller of callers.values()) if (caller.waiting.size > (most?.waiting.size ?? 0)) most = caller
    return most
  }

  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket)
    const address = normaliseAddress(socket.remoteAddress ?? '')
    const caller = callers.get(address) ?? { address, open: 0, waiting: new Set() }
    const hasRoom =
      caller.open >= limits.perAddress ? endOne(caller) : open.size < limits.all || endOne(mostWaiting())
    if (!hasRoom) {
      socket.destroy()
      return
    }
    callers.set(address, caller)
    caller.open += 1
    caller.waiting.add(key)
    open.set(key, { socket, caller })
    socket.once('close', () => {
      // By now, another connection may have the same address and port.
      if (open.get(key)?.socket === socket) forget(key)
    })
  })
  server.on('request', (request: IncomingMessage, response) => {
    const key = keyOf(request.socket)
    let answered = false
    const begun = () => {
      if (!answered) open.get(key)?.caller.waiting.delete(key)
    }
    // The parser reports the end of a request right after its headers, if there is no body.
    process.nextTick(() => {
      if (request.complete) begun()
      else request.once('end', begun)
    })
    response.once('close', () => {
      answered = true
      open.get(key)?.caller.waiting.add(key)
    })
  })
  return () => open.forEach(({ socket }) => socket.destroy())
}

const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/** How many connections may be open. Beyond that, a new connection replaces a waiting one (`limitConnections`). */
interface ConnectionLimits {
  readonly all: number
  /** From one address. A pod calls its few hooks; a kubelet calls the hooks of all pods of its host. */
  readonly perAddress: number
}

/** The limits of one port. Every listener of the agent has a PortPolicy, and no other limits. */
export interface PortPolicy {
  readonly connections: ConnectionLimits
  /** Time for a TLS handshake, in ms. */
  readonly handshakeMs: number
  /** The time in which the headers must arrive, and in which the whole request must arrive, in ms. A hook is held for longer. */
  readonly headersMs: number
  readonly requestMs: number
  /** How long an idle connection is kept after its last answer, in ms. */
  readonly idleMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
}

/** How many files this process may have open. Node raises this limit as far as it may. */
function openFiles(): number {
  const limits = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'utf8') : ''
  return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity)
}
/** The part of them that a port gives to its callers. The agent keeps three eighths for its own calls, which every proof needs. */
const share = (eighths: number, most: number): number =>
  Math.min(most, Math.floor((openFiles() * eighths) / 8))

/** How many hooks an agent holds at once. More get 503, or 429 for one pod. */
export const MOST_HOOKS = { maxHooks: share(2, 2000), maxHooksPerPod: 16 }
/** Connections for scrapers, probes and the dashboard, besides those of the hooks. */
const OTHER_CONNECTIONS = share(1, 256)
/** Twice the pods of one host: a kubelet calls `httpGet` hooks from its own address. */
const PER_ADDRESS = 512

const COMMON = {
  handshakeMs: 5000,
  headersMs: 5000,
  requestMs: 10_000,
  idleMs: 5000,
  maxHeaderBytes: 8192,
  maxHeaders: 64
}

/** The limits for the port of the hooks. */
export const hookPolicy = (maxHooks: number): PortPolicy => ({
  ...COMMON,
  connections: { all: maxHooks + OTHER_CONNECTIONS, perAddress: PER_ADDRESS }
})

/** The limits for the port of dashboard and metrics. Behind a proxy, all users share one address. */
export const pagePolicy: PortPolicy = {
  ...COMMON,
  connections: { all: OTHER_CONNECTIONS, perAddress: OTHER_CONNECTIONS }
}

/** The limits for the port of the webhook. Only API servers call it. They wait 3 s, and each may send many reviews at once. */
export const webhookPolicy: PortPolicy = {
  ...COMMON,
  requestMs: 5000,
  connections: { all: share(1, 512), perAddress: 256 }
}
