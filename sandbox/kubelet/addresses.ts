import { createServer } from 'node:net'

/** Pod addresses: loopback addresses that other software on this machine is unlikely to use. */
export interface Addresses {
  allocate(): string
  /** Makes the next `allocate` return this address, even if another pod had it: Kubernetes reuses an address within seconds. */
  reuse(ip: string): void
}

/** Without addresses in 127/8, a pod's address is only the name of a port of this one. */
export const AT_PORTS = '127.0.0.1'
export const isAtPort = (url: string): boolean => new URL(url).hostname === AT_PORTS

/** The place at which a pod with this address listens, and at which it is called. */
export function placeOf(ip: string, port: number): { readonly host: string; readonly port: number } {
  const [ten, two, high = 0, low = 0] = ip.split('.').map(Number)
  return ten === 10 && two === 250 ? { host: AT_PORTS, port: high * 256 + low } : { host: ip, port }
}

/** Whether the system has addresses in 127/8 besides the first: Linux has, macOS has not. */
export const hasLoopback = (): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer().once('error', () => resolve(false))
    server.listen(0, '127.1.0.1', () => server.close(() => resolve(true)))
  })

/** Ports that no other software is likely to use: below those that systems draw for outgoing connections. */
const [FIRST_PORT, PORTS] = [10_000, 18_000]
let nextPort = Math.floor(Math.random() * PORTS)
/** Names of ports: 10.250.39.16 is port 39 * 256 + 16. */
export const createPorts = (): Addresses => ({
  allocate() {
    const port = FIRST_PORT + (nextPort++ % PORTS)
    return `10.250.${port >> 8}.${port % 256}`
  },
  reuse: () => {}
})

/** Addresses of a subnet 127.a.b.0: 127.a.b.1 to 127.a.b.250. */
const PER_SUBNET = 250
/** `a` is from 1 to 254: other software listens in 127.0.b.0. */
const SUBNETS = 254 * 256

/** Drawn at random, so that several processes on one machine are unlikely to collide. */
let next = Math.floor(Math.random() * SUBNETS)
const nextSubnet = (): number => next++ % SUBNETS

/** Addresses of subnets unique to this caller; the next subnet is taken when the previous one is used up. */
export function createAddresses(subnet: () => number = nextSubnet): Addresses {
  const wanted: string[] = []
  let current = 0
  let used = PER_SUBNET
  return {
    allocate() {
      const again = wanted.shift()
      if (again !== undefined) return again
      if (used === PER_SUBNET) {
        current = subnet()
        used = 0
      }
      return `127.${1 + Math.floor(current / 256)}.${current % 256}.${++used}`
    },
    reuse: ip => void wanted.push(ip)
  }
}
