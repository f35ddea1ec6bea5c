import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  createServer as createHttp2,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session
} from 'node:http2'
import { createServer, type AddressInfo, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTls } from 'node:tls'
import type { Certificate } from './tls.ts'
import { Wire } from './wire.ts'

export type Request = IncomingMessage | Http2ServerRequest
export type Response = ServerResponse | Http2ServerResponse
export type Handler = (request: Request, response: Response) => void

/** The sockets under the API: they can all be listed, frozen and reset, and the port survives a restart. */
export interface Listener {
  readonly port: number
  readonly wires: ReadonlySet<Wire>
  /** How many connections it has accepted since its start. */
  accepted(): number
  readonly sessions: ReadonlySet<ServerHttp2Session>
  /** From now on new connections start out frozen. */
  freezeNew(frozen: boolean): void
  /** Resets (RST) the connection of this answer. */
  reset(response: Response): void
  /** Stops listening and resets every connection. */
  down(): Promise<void>
  /** Listens on the same port again. */
  up(): Promise<void>
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n')

const settings = { maxConcurrentStreams: 1000, initialWindowSize: 1 << 20 }

type Take = (stream: Duplex, protocol: 'http1' | 'http2') => void

/** Without TLS: HTTP/1.1 or HTTP/2 by the first bytes of a connection. */
const plain =
  (take: Take) =>
  (wire: Wire): void => {
    wire.once('data', (first: Buffer) => {
      wire.pause()
      wire.unshift(first)
      const isHttp2 = PREFACE.subarray(0, first.length).equals(first.subarray(0, PREFACE.length))
      take(wire, isHttp2 ? 'http2' : 'http1')
      if (!isHttp2) wire.resume()
    })
  }

/**
 * TLS: HTTP/1.1 or HTTP/2 by ALPN. Each connection gets a server of its own (0.7 ms), because a shared server does not
 * show which wire belongs to a socket.
 */
const secure =
  (take: Take, { cert, key }: Certificate) =>
  (wire: Wire): void => {
    const server = createTls({ cert, key, ALPNProtocols: ['h2', 'http/1.1'] })
    server.on('secureConnection', socket => take(socket, socket.alpnProtocol === 'h2' ? 'http2' : 'http1'))
    // A client that does not know the CA, or disconnects in the handshake, needs no handling.
    server.on('tlsClientError', () => wire.destroy())
    server.emit('connection', wire)
  }

export async function listen(
  handle: Handler,
  options: { host: string; port: number; certificate: Certificate | undefined }
): Promise<Listener> {
  const wires = new Set<Wire>()
  let accepted = 0
  const sessions = new Set<ServerHttp2Session>()
  let frozen = false
  let server: Server
  let { port } = options

  // Node creates the session inside the call that hands over its connection, so `current` is the wire of that session.
  let current: Wire | undefined
  const under = new WeakMap<object, Wire>()
  const http = createHttp({ requestTimeout: 0 }, handle)
  const http2 = createHttp2({ settings }, handle).on('session', session => {
    if (current) under.set(session, current)
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
  })
  const take =
    (wire: Wire): Take =>
    (stream, protocol) => {
      under.set(stream, wire)
      if (protocol === 'http1') {
        http.emit('connection', stream)
        return
      }
      // Hands the connection over in a later turn, if the client is still there. A session that is destroyed in the turn of its creation
      // crashes the process. Node reads buffered data in a nextTick, and does not check whether the session still exists.
      setImmediate(() => {
        if (stream.destroyed || wire.destroyed) return
        current = wire
        http2.emit('connection', stream)
        current = undefined
      })
    }
  const accept = (wire: Wire) => {
    if (options.certificate) secure(take(wire), options.certificate)(wire)
    else plain(take(wire))(wire)
  }

  const up = async () => {
    server = createServer(socket => {
      const wire = new Wire(socket)
      wires.add(wire)
      accepted += 1
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
    accepted: () => accepted,
    sessions,
    freezeNew(value) {
      frozen = value
    },
    reset(response) {
      const carrier = 'stream' in response ? response.stream.session : response.socket
      if (carrier) under.get(carrier)?.reset()
    },
    down,
    up
  }
}
