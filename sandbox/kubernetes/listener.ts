import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  createSecureServer,
  createServer as createH2c,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session
} from 'node:http2'
import { createServer, type AddressInfo, type Server } from 'node:net'
import type { Certificate } from './tls.ts'
import { Wire } from './wire.ts'

export type Request = IncomingMessage | Http2ServerRequest
export type Response = ServerResponse | Http2ServerResponse
export type Handler = (request: Request, response: Response) => void

/** The sockets under the API: all connections can be seen, frozen and reset, and the port survives a restart. */
export interface Listener {
  readonly port: number
  readonly wires: ReadonlySet<Wire>
  readonly sessions: ReadonlySet<ServerHttp2Session>
  /** From now on new connections start out frozen. */
  freezeNew(frozen: boolean): void
  /** Stops listening and resets every connection. */
  down(): Promise<void>
  /** Listens on the same port again. */
  up(): Promise<void>
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n')

const settings = { maxConcurrentStreams: 1000, initialWindowSize: 1 << 20 }

/** Hands plain connections to HTTP/1.1 or HTTP/2 by their first bytes. */
function plain(handle: Handler, sessions: (session: ServerHttp2Session) => void): (wire: Wire) => void {
  const http = createHttp({ keepAliveTimeout: 0, requestTimeout: 0 }, handle)
  const h2c = createH2c({ settings }, handle).on('session', sessions)
  return wire => {
    wire.once('data', (first: Buffer) => {
      wire.pause()
      wire.unshift(first)
      const isHttp2 = first.subarray(0, PREFACE.length).equals(PREFACE.subarray(0, first.length))
      ;(isHttp2 ? h2c : http).emit('connection', wire)
      if (!isHttp2) wire.resume()
    })
  }
}

function secure(
  handle: Handler,
  { cert, key }: Certificate,
  sessions: (session: ServerHttp2Session) => void
): (wire: Wire) => void {
  const server = createSecureServer({ cert, key, allowHTTP1: true, settings }, handle)
  server.on('session', sessions)
  server.on('sessionError', () => {})
  // A client that does not know our CA, or hangs up in the handshake, is no event.
  server.on('tlsClientError', () => {})
  return wire => void server.emit('connection', wire)
}

export async function listen(
  handle: Handler,
  options: { host: string; port: number; certificate: Certificate | undefined }
): Promise<Listener> {
  const wires = new Set<Wire>()
  const sessions = new Set<ServerHttp2Session>()
  let frozen = false
  let server: Server
  let { port } = options

  const watchSession = (session: ServerHttp2Session) => {
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
  }
  const accept = options.certificate
    ? secure(handle, options.certificate, watchSession)
    : plain(handle, watchSession)

  const up = async () => {
    server = createServer(socket => {
      const wire = new Wire(socket)
      wires.add(wire)
      wire.on('error', () => {})
      wire.on('close', () => wires.delete(wire))
      if (frozen) wire.freeze()
      accept(wire)
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, options.host, resolve)
    })
    port = (server.address() as AddressInfo).port
  }
  const down = async () => {
    const closed = new Promise<void>(resolve => void server.close(() => resolve()))
    for (const wire of wires) wire.reset()
    await closed
  }

  await up()
  return {
    port,
    wires,
    sessions,
    freezeNew(value) {
      frozen = value
    },
    down,
    up
  }
}
