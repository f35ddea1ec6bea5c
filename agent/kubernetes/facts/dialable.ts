import { BlockList, isIP } from 'node:net'

/** Addresses that no gateway can have: this host, link-local ones (cloud metadata), multicast groups, and the unspecified address. */
const NEVER: readonly (readonly [network: string, prefix: number, family: 'ipv4' | 'ipv6'])[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['fd00:ec2::254', 128, 'ipv6'],
  ['ff00::', 8, 'ipv6']
]

const never = new BlockList()
for (const [network, prefix, family] of NEVER) never.addSubnet(network, prefix, family)
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addSubnet('::1', 128, 'ipv6')

const isIn = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/**
 * Whether the agent may call the address of a gateway's pod, with its token. The address comes from the pod's status. Whoever writes that
 * status must not be able to send the agent to the cloud's metadata service or to the agent itself.
 *
 * @param local loopback is allowed too: the whole cluster is on this machine
 */
export const isDialable = (address: string, local: boolean): boolean =>
  isIP(address) !== 0 &&
  !address.includes('%') &&
  !isIn(never, address) &&
  (local || !isIn(loopback, address))

/** Whether the API server has a loopback address: then pods can have one too. */
export function isLocal(origin: string): boolean {
  const { hostname } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || (isIP(host) !== 0 && isIn(loopback, host))
}
