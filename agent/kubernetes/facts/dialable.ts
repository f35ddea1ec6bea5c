import { isIP } from 'node:net'
import { addressRanges } from '../../base/address-ranges.ts'

/** Addresses that no gateway can have: this host, link-local ones (cloud metadata), multicast groups, and the unspecified address. */
const isNever = addressRanges([
  '0.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/128',
  'fe80::/10',
  'fd00:ec2::254/128',
  'ff00::/8'
])
const isLoopback = addressRanges(['127.0.0.0/8', '::1/128'])

/**
 * Whether the agent may call the address of a gateway's pod, with its token. The address comes from the pod's status. Whoever writes that
 * status must not be able to send the agent to the cloud's metadata service or to the agent itself.
 *
 * @param local loopback is allowed too: the whole cluster is on this machine
 */
export const isDialable = (address: string, local: boolean): boolean =>
  isIP(address) !== 0 && !address.includes('%') && !isNever(address) && (local || !isLoopback(address))

/** Whether the API server has a loopback address: then pods can have one too. */
export function isLocal(origin: string): boolean {
  const { hostname } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || isLoopback(host)
}
