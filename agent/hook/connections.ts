import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { normaliseAddress } from '../page/address.ts'

/** How many connections there may be. Beyond that the one that has asked nothing for longest is ended for a new one. */
export interface ConnectionLimits {
  readonly all: number
  /** From one address: a pod's few hooks, or all of a host's, whose kubelet calls for its pods. */
  readonly perAddress: number
}

/**
 * Keeps whoever opens connections and asks nothing (by mistake, or to keep others out) from being in the way of a hook. A
 * hook asks at once, and a connection that has asked is never ended here: those are bounded by `HookLimit`. The dashboard's
 * stream counts as idle: the page reconnects by itself.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  /** Every connection, and its siblings from the same address, oldest first. */
  const open = new Map<Socket, { readonly address: string; readonly siblings: Set<Socket> }>()
  const byAddress = new Map<string, Set<Socket>>()
  /** Those that have asked nothing since their last answer, the one that has been quiet for longest first. */
  const idle = new Set<Socket>()

  const forget = (socket: Socket) => {
    const place = open.get(socket)
    if (!place) return
    open.delete(socket)
    idle.delete(socket)
    place.siblings.delete(socket)
    if (place.siblings.size === 0) byAddress.delete(place.address)
  }
  /** Ends one of these that asks nothing. `false`: all of them are being answered. */
  const endOne = (among: Iterable<Socket>): boolean => {
    for (const socket of among) {
      if (!idle.has(socket)) continue
      // Now, and not when it is closed: many may come in the same turn.
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
