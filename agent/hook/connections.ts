import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { normaliseAddress } from '../report/page/guard.ts'
import type { ConnectionLimits } from './port-policy.ts'

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
 * request at once. This code never closes a connection whose request is being answered; `HookSlots` limits those. The dashboard's
 * stream counts as waiting, because the page reconnects by itself. If the port is full, the address with the most waiting connections
 * loses one connection. So a flood from a few addresses costs only its own connections, even if this process is slow.
 *
 * @returns a function that destroys every connection, also one that was upgraded, of which the server knows nothing
 */
export function limitConnections(server: Server, limits: ConnectionLimits): () => void {
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
