import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { normaliseAddress } from '../page/address.ts'

/** How many connections may be open. Beyond that, a new connection replaces the one that has been idle for longest. */
export interface ConnectionLimits {
  readonly all: number
  /** From one address: the few hooks of a pod, or all those of a host, whose kubelet calls for its pods. */
  readonly perAddress: number
}

/**
 * Keeps clients that open connections and send no request (by mistake, or to keep others out) from blocking a hook. A hook
 * sends its request at once, and a connection is never ended here while it is being answered: `HookLimit` bounds those. The
 * dashboard's stream counts as idle: the page reconnects by itself.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  /** Every connection, and its siblings from the same address, oldest first. */
  const open = new Map<Socket, { readonly address: string; readonly siblings: Set<Socket> }>()
  const byAddress = new Map<string, Set<Socket>>()
  /** Connections without a request since their last answer, the longest idle first. */
  const idle = new Set<Socket>()

  const forget = (socket: Socket) => {
    const place = open.get(socket)
    if (!place) return
    open.delete(socket)
    idle.delete(socket)
    place.siblings.delete(socket)
    if (place.siblings.size === 0) byAddress.delete(place.address)
  }
  /** Ends one idle connection among these. `false`: all of them are being answered. */
  const endOne = (among: Iterable<Socket>): boolean => {
    for (const socket of among) {
      if (!idle.has(socket)) continue
      // Now rather than on its `close` event: many connections may arrive in the same turn.
      forget(socket)
      socket.destroy()
      return true
    }
    return false
  }

  server.on('connection', (socket: Socket) => {
    const address = normaliseAddress(socket.remoteAddress ?? '')
    const siblings = byAddress.get(address) ?? new Set<Socket>()
    const hasRoom =
      siblings.size >= limits.perAddress ? endOne(siblings) : open.size < limits.all || endOne(idle)
    if (!hasRoom) {
      socket.destroy()
      return
    }
    byAddress.set(address, siblings.add(socket))
    open.set(socket, { address, siblings })
    idle.add(socket)
    socket.once('close', () => forget(socket))
  })
  server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    response.once('close', () => {
      if (open.has(socket)) idle.add(socket)
    })
  })
}
