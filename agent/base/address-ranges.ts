import { BlockList, isIP, isIPv6 } from 'node:net'

/** Returns a function that checks whether an address is in one of these ranges (`10.244.0.0/16`). A domain name is in none. */
export function addressRanges(ranges: readonly string[]): (host: string) => boolean {
  const blocks = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    blocks.addSubnet(network, Number(prefix), isIPv6(network) ? 'ipv6' : 'ipv4')
  }
  return host => isIP(host) !== 0 && blocks.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')
}

/**
 * The /24 (IPv4) or /64 (IPv6) of an address: the size of range that networks usually give to a host for its pods.
 * `undefined` for any other text.
 */
export function neighbourhoodOf(host: string): string | undefined {
  if (isIP(host) === 0) return undefined
  if (!isIPv6(host)) return host.slice(0, host.lastIndexOf('.'))
  const [head = '', tail] = host.split('::')
  const groups = (text: string | undefined) => (text ? text.split(':') : [])
  const [front, back] = [groups(head), groups(tail)]
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  return [...front, ...zeros, ...back].slice(0, 4).join(':')
}

/** The host without brackets, and an IPv6 address in its shortest spelling (RFC 5952), which Kubernetes uses. */
export function canonicalHost(host: string): string {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  if (!isIPv6(bare)) return bare
  return URL.parse(`http://[${bare}]/`)?.hostname.slice(1, -1) ?? bare
}
