import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A load balancer like a Service: each new connection goes to the next address behind it, and stays there. */
export interface Balancer {
  /** Holds back what is sent, on open and new connections, until the returned function is called. */
  hold(): () => void
  close(): Promise<void>
}

/** Listens at `host` on all `ports`, and forwards to the same port of the next address. */
export async function startBalancer(
  host: string,
  ports: readonly number[],
  behind: readonly string[]
): Promise<Balancer> {
  const sockets = new Set<Socket>()
  const servers: Server[] = []
  let isHeld = false
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    return socket
  }
  for (const port of ports) {
    let next = 0
    const server = createServer(incoming => {
      const to = behind[next++ % behind.length]
      const outgoing = keep(connect(port, to))
      keep(incoming).pipe(outgoing).pipe(incoming)
      if (isHeld) incoming.pause()
      incoming.once('close', () => outgoing.destroy())
      outgoing.once('close', () => incoming.destroy())
    })
    servers.push(server)
    server.listen(port, host)
    await once(server, 'listening')
  }
  return {
    hold() {
      isHeld = true
      for (const socket of sockets) socket.pause()
      return () => {
        isHeld = false
        for (const socket of sockets) socket.resume()
      }
    },
    async close() {
      const closed = servers.map(server => new Promise(resolve => server.close(resolve)))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    }
  }
}
