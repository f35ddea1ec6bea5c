import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import { now } from '../now.ts'
import type { Arrival } from './report.ts'

/** After SIGTERM, an accepted connection without a request keeps the app alive for this long, in ms. */
const SILENT_MS = 1000

export interface App {
  readonly server: Server
  /** Ends the app as a worst-case app does at SIGTERM. Resolves when it may exit. */
  terminate(): Promise<void>
}

/** How the app treats accepted requests at SIGTERM. Many apps drop them, because they have no handler. */
export type AtSigterm = 'finish' | 'drop'

/** "Going away" (RFC 6455, 7.4.1): the client connects again, to another pod. */
const GOING_AWAY = 1001

/**
 * The worst-case app: it has no drain of its own. At SIGTERM it closes its listener and its idle keep-alive connections at
 * once, and finishes at most the requests that it has accepted. So every request that is still routed to it fails. It closes
 * its websockets with 1001, as the documentation asks of each app.
 * @param rate the most requests that it serves in a second; others wait
 */
export function createApp(
  pod: string,
  seen: (arrival: Arrival) => void,
  atSigterm: AtSigterm = 'finish',
  rate = Infinity
): App {
  const silent = new Set<Socket>()
  let terminating = false
  let nextAt = 0

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    silent.delete(request.socket)
    const method = request.method ?? ''
    seen({ at: now(), method })
    let received = 0
    for await (const chunk of request) received += (chunk as Buffer).length
    const begins = Math.max(now(), nextAt)
    nextAt = begins + 1000 / rate
    if (begins > now()) await wait(begins - now())
    const ms = Number(new URL(request.url ?? '/', 'http://app').searchParams.get('ms') ?? 0)
    if (ms > 0) await wait(ms)
    const body = JSON.stringify({ pod, method, received, terminating })
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'x-pod': pod,
      ...(terminating && { connection: 'close' })
    })
    response.end(body)
  }

  const server = createServer((request, response) => {
    // `answer` rejects only if the client has disconnected, so an error cannot be sent.
    answer(request, response).catch(() => response.destroy())
  })
  // An idle connection stays open until SIGTERM: as with a real app, the gateway's keep-alive pool decides when to close it.
  server.keepAliveTimeout = 75_000
  server.on('connection', socket => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })

  const websockets = new WebSocketServer({ noServer: true })
  websockets.on('headers', headers => headers.push(`x-pod: ${pod}`))
  server.on('upgrade', (request, socket, head) => {
    silent.delete(request.socket)
    seen({ at: now(), method: 'GET' })
    websockets.handleUpgrade(request, socket, head, client => {
      // The client has gone without a close frame, so its connection is closed already.
      client.on('error', () => {})
      client.on('message', message => client.send(message))
      if (terminating) client.close(GOING_AWAY)
    })
  })

  return {
    server,
    terminate() {
      terminating = true
      for (const client of websockets.clients) client.close(GOING_AWAY)
      return new Promise(resolve => {
        // `closeAllConnections` leaves upgraded connections open, so their close frames are still sent.
        server.close(() => resolve())
        if (atSigterm === 'drop') server.closeAllConnections()
        server.closeIdleConnections()
        setTimeout(() => silent.forEach(socket => socket.destroy()), SILENT_MS).unref()
      })
    }
  }
}
