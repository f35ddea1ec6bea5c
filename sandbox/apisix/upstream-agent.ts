import { Agent } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** APISIX's `nginx_config.http.upstream.keepalive` and `keepalive_timeout`. */
const MOST_IDLE = 320
const IDLE_MS = 60_000

/**
 * A worker's keep-alive pool to its nodes, as in nginx. The pool ignores the `Keep-Alive: timeout` of a server, so the next
 * request may get a connection that the node is about to close.
 */
class UpstreamAgent extends Agent {
  /** Decides whether a free connection is kept. */
  override keepSocketAlive(socket: Duplex): boolean {
    if (!(socket instanceof Socket)) return false
    socket.setKeepAlive(true, 1000)
    socket.setTimeout(IDLE_MS)
    return true
  }
}

export const createUpstreamAgent = (): Agent =>
  new UpstreamAgent({ keepAlive: true, maxFreeSockets: MOST_IDLE, scheduling: 'lifo' })
