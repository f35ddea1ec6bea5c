import type { IncomingMessage } from 'node:http'

/** What the handlers are given of the connection; `@hono/node-server` fills it in, tests write it down. */
export interface Connection {
  readonly incoming: { readonly socket: Pick<IncomingMessage['socket'], 'remoteAddress'> }
}

/**
 * The address a socket shows, in the form pods have it in `status.podIPs`: an IPv4 address that a dual-stack listener
 * sees as `::ffff:10.0.0.7` becomes `10.0.0.7`, a zone (`fe80::1%eth0`) goes, hex digits are small.
 */
export function normaliseAddress(address: string): string {
  const plain = address.toLowerCase().replace(/%.*$/, '')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)
  return mapped?.[1] ?? plain
}
