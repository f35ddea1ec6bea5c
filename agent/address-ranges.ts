import { BlockList, isIP, isIPv6 } from 'node:net'

/** Whether an address is in one of these ranges (`10.244.0.0/16`); what is no address, such as a domain name, is in none. */
export function addressRanges(ranges: readonly string[]): (host: string) => boolean {
  const blocks = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    blocks.addSubnet(network, Number(prefix), isIPv6(network) ? 'ipv6' : 'ipv4')
  }
  return host => isIP(host) !== 0 && blocks.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')
}
