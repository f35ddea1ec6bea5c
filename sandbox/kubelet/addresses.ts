/** Pod addresses: loopback addresses that other software on this machine is unlikely to use. */
export interface Addresses {
  allocate(): string
  /** Makes the next `allocate` return this address, even if another pod had it: Kubernetes reuses an address within seconds. */
  reuse(ip: string): void
}

/** Addresses of a subnet 127.a.b.0: 127.a.b.1 to 127.a.b.250. */
const PER_SUBNET = 250
/** `a` is from 1 to 254: other software listens in 127.0.b.0. */
const SUBNETS = 254 * 256

/** Drawn at random, so that several processes on one machine are unlikely to collide. */
let next = Math.floor(Math.random() * SUBNETS)
/** Never returns the same subnet twice in this process. */
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
