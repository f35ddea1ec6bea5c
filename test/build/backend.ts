import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { get } from './load.ts'

/** A pod's application: answers with its name, and records the requests that reached it. */
export interface Backend {
  readonly name: string
  /** When each request arrived, by the monotonic clock in ms. */
  readonly arrivals: readonly number[]
  /** Requests that have arrived and are not answered yet. */
  readonly open: number
  /** Answers the requests that wait because of `?hold`. */
  release(): void
  /**
   * Resolves when all earlier requests have been read. It sends a request through the queue of connections that are not
   * accepted yet, from which a process takes one at a time. That request does not count as an arrival.
   */
  caughtUp(): Promise<void>
  /** Acts as a worst-case app at SIGTERM: accepts no new connection, closes idle ones, finishes accepted requests. */
  terminate(): Promise<void>
  close(): Promise<void>
}

const CAUGHT_UP = '/caught-up'

/** Listens on the pod's own address. A request with `?hold` in its path is answered at `release`. */
export async function startBackend(name: string, ip: string, port: number): Promise<Backend> {
  const arrivals: number[] = []
  const sockets = new Set<Socket>()
  let held: (() => void)[] = []
  let open = 0
  const server = createServer((request, response) => {
    if (request.url === CAUGHT_UP) {
      response.end()
      return
    }
    arrivals.push(performance.now())
    open += 1
    response.once('close', () => (open -= 1))
    request.resume()
    const answer = () => void response.end(name)
    if (request.url?.includes('hold')) held.push(answer)
    else answer()
  })
  server.keepAliveTimeout = 75_000
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(port, ip)
  await once(server, 'listening')
  const release = () => {
    for (const answer of held) answer()
    held = []
  }
  const stop = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeIdleConnections()
    await closed
  }
  return {
    name,
    arrivals,
    get open() {
      return open
    },
    release,
    async caughtUp() {
      await get(`http://${ip}:${port}${CAUGHT_UP}`)
    },
    terminate: stop,
    async close() {
      const stopped = stop()
      for (const socket of sockets) socket.destroy()
      await stopped
    }
  }
}
