import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { isOwnOrigin, type Guard, type Shown } from './guard.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { snapshotText } from './dashboard.ts'

interface StreamOptions {
  readonly server: Server
  readonly guard: Guard
  /** Called only when a client needs it; `undefined` before the first round. */
  readonly snapshot: () => Snapshot | undefined
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<StreamLimits>
}

export interface StreamLimits {
  readonly maxClients: number
  /** The shortest interval between messages, in ms. */
  readonly everyMs: number
  /** A client is dropped if it has not answered a ping for this long, in ms, or if its token or session has ended. */
  readonly pingMs: number
}

export interface Stream {
  /** Call it when the snapshot may have changed. */
  poke(): void
  clients(): number
  /** Closes every client's connection. Resolves when the last one is gone. */
  close(): Promise<void>
}

const STREAM_PATH = '/api/stream'
const LIMITS: StreamLimits = { maxClients: 32, everyMs: 1000, pingMs: 10_000 }
/** The pause after a message, as a multiple of the time that making it took: so a page costs a twentieth of a core at most. */
const REST = 20

interface Client {
  /** Whether it answered the last ping. */
  answered: boolean
  /** Its credentials, which may be rotated or expire while the stream is open. */
  readonly shown: Shown
}

/** The largest message that a client may send, in bytes. The page sends none. */
const LARGEST_MESSAGE = 1024
const GOODBYE_MS = 500
const GOING_AWAY = 1001

/**
 * `/api/stream`: whole snapshots, the same for every client. Costs nothing without clients, and a slow client affects only itself: it
 * gets no snapshot before it has read the last one.
 */
export function createStream(options: StreamOptions): Stream {
  const { server, guard, snapshot, clock, log } = options
  const limits = { ...LIMITS, ...options.limits }
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: LARGEST_MESSAGE,
    perMessageDeflate: false
  })
  const clients = new Map<WebSocket, Client>()
  let nextAt = -Infinity
  let cancelTell: (() => void) | undefined
  let cancelPing: (() => void) | undefined
  let closed = false

  const refusal = (request: IncomingMessage): string | undefined => {
    const { headers, url = '' } = request
    if (url.split('?', 1)[0] !== STREAM_PATH) return '404 Not Found'
    if (!guard.admits(shownBy(request))) return '401 Unauthorized'
    if (!isOwnOrigin(headers.origin, headers.host)) return '403 Forbidden'
    return closed || clients.size >= limits.maxClients || !snapshot() ? '503 Service Unavailable' : undefined
  }

  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy())
    const refused = refusal(request)
    if (refused !== undefined) {
      const answer = `HTTP/1.1 ${refused}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`
      socket.end(answer, () => socket.destroy())
      return
    }
    sockets.handleUpgrade(request, socket, head, welcome)
  }

  const welcome = (client: WebSocket, request: IncomingMessage): void => {
    const first = snapshot()
    client.on('error', err => log.debug({ err }, 'client of the dashboard failed'))
    if (!first) return client.terminate()
    const known: Client = { answered: true, shown: shownBy(request) }
    clients.set(client, known)
    client.on('pong', () => void (known.answered = true))
    client.on('close', () => leave(client))
    client.send(snapshotText(first))
    cancelPing ??= clock.alarm(clock.now() + limits.pingMs, ping)
    poke()
  }

  const leave = (client: WebSocket): void => {
    clients.delete(client)
    if (clients.size > 0) return
    cancelPing?.()
    cancelTell?.()
    cancelPing = cancelTell = undefined
  }

  const drop = (client: WebSocket, why: string): void => {
    log.info({ why }, 'client of the dashboard dropped')
    client.terminate()
    leave(client)
  }

  const ping = (): void => {
    for (const [client, known] of clients) {
      if (!known.answered) drop(client, 'it did not answer a ping')
      else if (!guard.admits(known.shown)) drop(client, 'its token was rotated, or its session has expired')
      else {
        known.answered = false
        client.ping()
      }
    }
    cancelPing = clients.size > 0 ? clock.alarm(clock.now() + limits.pingMs, ping) : undefined
  }

  const tell = (): void => {
    cancelTell = undefined
    const from = clock.now()
    const next = snapshot()
    if (!next) return
    const text = Buffer.from(snapshotText(next))
    for (const client of clients.keys()) if (client.bufferedAmount === 0) client.send(text, { binary: false })
    nextAt = from + Math.max(limits.everyMs, REST * (clock.now() - from))
  }

  function poke(): void {
    if (clients.size === 0 || closed) return
    cancelTell ??= clock.alarm(Math.max(clock.now(), nextAt), tell)
  }

  server.on('upgrade', upgrade)
  return {
    poke,
    clients: () => clients.size,
    async close() {
      closed = true
      const leaving = [...clients.keys()]
      const gone = leaving.map(client => new Promise(resolve => void client.once('close', resolve)))
      for (const client of leaving) client.close(GOING_AWAY, 'the agent is stopping')
      await Promise.race([Promise.all(gone), clock.sleep(GOODBYE_MS)])
      for (const client of leaving) client.terminate()
    }
  }
}

const shownBy = ({ headers }: IncomingMessage): Shown => ({
  authorization: headers.authorization,
  cookie: headers.cookie
})
