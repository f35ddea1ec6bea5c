import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** `silent` accepts connections and never answers, as behind a dropped route; `refused` closes the port. */
export type Reachability = 'open' | 'silent' | 'refused'

/** An HTTP listener that can be cut off and come back on the same address, and that leaves no connection when it closes. */
export interface Listener {
  readonly host: string
  readonly port: number
  readonly server: Server
  readonly reachability: Reachability
  reach(next: Reachability): Promise<void>
  /** Resolves once the listener is `open`, perhaps at once; never after `close`. */
  passage(): Promise<void>
  /** Ends every connection, finished or not. */
  close(): Promise<void>
}

interface ListenOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly onRequest: RequestListener
  readonly onConnection?: (socket: Socket) => void
}

/** Rejects with the system's error (`EADDRINUSE`, …) if the address is not available. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const sockets = new Set<Socket>()
  let reachability: Reachability = 'open'
  let waiting: (() => void)[] = []
  // As nginx: no limit on how long a request takes, idle connections are kept for 75 s.
  const server = createServer(
    { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 75_000 },
    options.onRequest
  )
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    options.onConnection?.(socket)
  })
  await start(server, options.host, options.port)
  const { port } = server.address() as AddressInfo

  const stop = async (): Promise<void> => {
    const closed = server.listening ? new Promise(resolve => server.close(resolve)) : undefined
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    host: options.host,
    port,
    server,
    get reachability() {
      return reachability
    },
    reach: async next => {
      if (next === reachability) return
      const before = reachability
      reachability = next
      if (next === 'refused') await stop()
      if (before === 'refused') await start(server, options.host, port)
      if (next !== 'open') return
      for (const go of waiting) go()
      waiting = []
    },
    passage: async () => {
      if (reachability !== 'open') await new Promise<void>(resolve => waiting.push(resolve))
    },
    close: async () => {
      waiting = []
      await stop()
    }
  }
}

const start = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
