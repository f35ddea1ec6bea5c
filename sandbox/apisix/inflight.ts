/** Requests that a worker has begun to connect to a node, or has sent, and has not finished. */
export interface Inflight {
  readonly requests: number
  /** Upgraded connections (websocket). */
  readonly long: number
}

export type InflightKind = keyof Inflight

/** Counts per worker, so that the counts of a dead worker can be dropped. */
export interface InflightCounts {
  up(pid: number, ip: string, port: number, kind: InflightKind): void
  down(pid: number, ip: string, port: number, kind: InflightKind): void
  /** Forgets a worker. */
  drop(pid: number): void
  /** Over all workers; without `port`, over all ports of the address. */
  of(ip: string, port: number | undefined): Inflight
  /** Addresses with upgraded connections, and their number. */
  longLived(): readonly { readonly ip: string; readonly port: number; readonly upgraded: number }[]
  /** The sum over all workers and addresses. */
  readonly total: number
  /** Calls `listener` before an ordinary request to this address is counted down. Returns the function that removes the listener. */
  onFinished(listener: (ip: string, port: number) => void): () => void
  /** Calls `listener` when a count reaches 0; without `ip` if a worker is gone. Returns the function that removes the listener. */
  onFallen(listener: (ip: string | undefined) => void): () => void
}

type Counter = { requests: number; long: number }

export function createInflightCounts(): InflightCounts {
  const workers = new Map<number, Map<string, Map<number, Counter>>>()
  const listeners = new Set<(ip: string | undefined) => void>()
  const finished = new Set<(ip: string, port: number) => void>()

  const counter = (pid: number, ip: string, port: number): Counter => {
    const ips = workers.get(pid) ?? new Map<string, Map<number, Counter>>()
    workers.set(pid, ips)
    const ports = ips.get(ip) ?? new Map<number, Counter>()
    ips.set(ip, ports)
    const known = ports.get(port) ?? { requests: 0, long: 0 }
    ports.set(port, known)
    return known
  }
  const fallen = (ip: string | undefined): void => {
    for (const listener of listeners) listener(ip)
  }
  return {
    up: (pid, ip, port, kind) => {
      counter(pid, ip, port)[kind] += 1
    },
    down: (pid, ip, port, kind) => {
      // A request that outlives its worker has no count to release.
      const ports = workers.get(pid)?.get(ip)
      const known = ports?.get(port)
      if (!ports || !known) return
      if (kind === 'requests') for (const listener of finished) listener(ip, port)
      known[kind] -= 1
      if (known[kind] > 0) return
      if (known.requests === 0 && known.long === 0) {
        ports.delete(port)
        if (ports.size === 0) workers.get(pid)?.delete(ip)
      }
      fallen(ip)
    },
    drop: pid => {
      workers.delete(pid)
      fallen(undefined)
    },
    of: (ip, port) => {
      const sum = { requests: 0, long: 0 }
      for (const ips of workers.values())
        for (const [at, { requests, long }] of ips.get(ip) ?? []) {
          if (port !== undefined && at !== port) continue
          sum.requests += requests
          sum.long += long
        }
      return sum
    },
    longLived: () => {
      const sums = new Map<string, { ip: string; port: number; upgraded: number }>()
      for (const ips of workers.values())
        for (const [ip, ports] of ips)
          for (const [port, { long }] of ports) {
            const known = sums.get(`${ip} ${port}`) ?? { ip, port, upgraded: 0 }
            sums.set(`${ip} ${port}`, { ...known, upgraded: known.upgraded + long })
          }
      return [...sums.values()].filter(({ upgraded }) => upgraded > 0)
    },
    get total() {
      const all = [...workers.values()].flatMap(ips =>
        [...ips.values()].flatMap(ports => [...ports.values()])
      )
      return all.reduce((sum, { requests, long }) => sum + requests + long, 0)
    },
    onFinished: listener => {
      finished.add(listener)
      return () => finished.delete(listener)
    },
    onFallen: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  }
}
