import { isIP } from 'node:net'
import type { IncomingMessage } from 'node:http'

/** The part of the connection that handlers get. `@hono/node-server` sets it; tests pass their own. */
export interface Connection {
  readonly incoming: {
    readonly socket: Pick<IncomingMessage['socket'], 'remoteAddress'> &
      Partial<Pick<IncomingMessage['socket'], 'destroy'>>
  }
}

/**
 * A socket's address in the form of `status.podIPs`. An IPv4 address that a dual-stack listener sees as `::ffff:10.0.0.7`
 * becomes `10.0.0.7`. A zone (`fe80::1%eth0`) is dropped, and hex digits become lower case.
 */
export function normaliseAddress(address: string): string {
  const [plain = ''] = address.toLowerCase().split('%', 1)
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)
  return mapped?.[1] ?? plain
}

/**
 * The address of a client behind proxies that the operator trusts: the last one of `X-Forwarded-For` that is not a proxy's. A client can
 * write the front of that header itself, so it is read from its end, and only if a proxy sent it.
 *
 * @param socket the address of the connection
 */
export function clientAddress(
  socket: string | undefined,
  forwardedFor: string | undefined,
  isProxy: (address: string) => boolean
): string {
  const hops = forwardedFor?.split(',') ?? []
  let address = normaliseAddress(socket ?? '')
  while (isProxy(address)) {
    const hop = normaliseAddress(hops.pop()?.trim() ?? '')
    if (isIP(hop) === 0) break
    address = hop
  }
  return address
}
