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
