import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { now } from '../now.ts'
import type { Arrival } from './report.ts'

/** After SIGTERM, an accepted connection without a request keeps the app alive for this long, in ms. */
const SILENT_MS = 1000

export interface App {
  readonly server: Server
  readonly counts: { served: number; afterTerm: number }
  /** Ends the app as a worst-case app does at SIGTERM. Resolves when every accepted request is answered. */
  terminate(): Promise<void>
}

/**
 * The worst-case app: it has no drain of its own. At SIGTERM it closes its listener and its idle keep-alive connections at
 * once, and finishes only the requests that it has accepted. So every request that is still routed to it fails.
 */
export function createApp(pod: string, seen: (arrival: Arrival) => void): App {
  const counts = { served: 0, afterTerm: 0 }
  const silent = new Set<Socket>()
  let terminating = false

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    silent.delete(request.socket)
    const method = request.method ?? ''
    seen({ at: now(), method, afterTerm: terminating })
    counts.served++
    if (terminating) counts.afterTerm++
    let received = 0
    for await (const chunk of request) received += (chunk as Buffer).length
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
    // Only a client that has disconnected leads here, so there is no receiver for an answer.
    answer(request, response).catch(() => response.destroy())
  })
  // An idle connection stays open until SIGTERM: as with a real app, the gateway's keep-alive pool decides when to close it.
  server.keepAliveTimeout = 75_000
  server.on('connection', socket => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })

  return {
    server,
    counts,
    terminate() {
      terminating = true
      return new Promise(resolve => {
        server.close(() => resolve())
        server.closeIdleConnections()
        setTimeout(() => silent.forEach(socket => socket.destroy()), SILENT_MS).unref()
      })
    }
  }
}
