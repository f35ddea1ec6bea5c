import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { normaliseAddress } from '../page/address.ts'
import type { ConnectionLimits } from './port-policy.ts'

interface Open {
  readonly socket: Socket
  /** Its siblings from the same address, oldest first. */
  readonly siblings: Set<string>
  readonly address: string
}

/**
 * Keeps clients that open connections and send no request, or half of one (by mistake, or to keep others out), from blocking a
 * caller. A hook sends its request at once, and a connection is never ended here while it is being answered: `HookLimit` bounds
 * those. The dashboard's stream counts as waiting: the page reconnects by itself.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  /** By the caller's address and port: with TLS, a request has another socket than its connection. */
  const open = new Map<string, Open>()
  const byAddress = new Map<string, Set<string>>()
  /** Connections without a complete request since their last answer, the longest of them first. */
  const waiting = new Set<string>()

  const forget = (key: string) => {
    const known = open.get(key)
    if (!known) return
    open.delete(key)
    waiting.delete(key)
    known.siblings.delete(key)
    if (known.siblings.size === 0) byAddress.delete(known.address)
  }
  /** Ends one waiting connection among these. `false`: all of them are being answered. */
  const endOne = (among: Iterable<string>): boolean => {
    for (const key of among) {
      const known = open.get(key)
      if (!known || !waiting.has(key)) continue
      // Forgotten now, not at its `close` event, because many connections may arrive in the same turn.
      forget(key)
      known.socket.destroy()
      return true
    }
    return false
  }

  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket)
    const address = normaliseAddress(socket.remoteAddress ?? '')
    const siblings = byAddress.get(address) ?? new Set<string>()
    const hasRoom =
      siblings.size >= limits.perAddress ? endOne(siblings) : open.size < limits.all || endOne(waiting)
    if (!hasRoom) {
      socket.destroy()
      return
    }
    byAddress.set(address, siblings.add(key))
    open.set(key, { socket, siblings, address })
    waiting.add(key)
    socket.once('close', () => {
      // The same address and port may be in use again.
      if (open.get(key)?.socket === socket) forget(key)
    })
  })
  server.on('request', (request: IncomingMessage, response) => {
    const key = keyOf(request.socket)
    let answered = false
    const begun = () => {
      if (!answered) waiting.delete(key)
    }
    // The parser reports the end of a request right after its headers, if there is no body.
    process.nextTick(() => {
      if (request.complete) begun()
      else request.once('end', begun)
    })
    response.once('close', () => {
      answered = true
      if (open.has(key)) waiting.add(key)
    })
  })
}

const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
