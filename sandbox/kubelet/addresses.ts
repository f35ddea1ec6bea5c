/** Pod addresses: loopback addresses that nobody else on this machine is likely to use. */
export interface Addresses {
  allocate(): string
  /** The next `allocate` gives this one, whoever had it: Kubernetes reuses a pod's address within seconds. */
  reuse(ip: string): void
}

/** Hosts per pool: 127.a.b.1 to 127.a.b.250, then the next b. */
const PER_SUBNET = 250

/**
 * Addresses from 127.a.b.1 upwards. `a` and `b` are drawn at random so that several sandboxes on one machine do not
 * meet; never 127.0.x.y, where other software listens.
 */
export function createAddresses(random: () => number = Math.random): Addresses {
  const a = 1 + Math.floor(random() * 254)
  const start = Math.floor(random() * 256)
  const wanted: string[] = []
  let used = 0
  return {
    allocate() {
      const again = wanted.shift()
      if (again !== undefined) return again
      const b = (start + Math.floor(used / PER_SUBNET)) % 256
      return `127.${a}.${b}.${1 + (used++ % PER_SUBNET)}`
    },
    reuse: ip => void wanted.push(ip)
  }
}
