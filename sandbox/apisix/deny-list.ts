/** One address of one pod that is to be avoided (docs/barrier-api.md). */
export interface Entry {
  readonly uid: string
  /** Canonical. */
  readonly ip: string
  /** `undefined`: every port of the address. */
  readonly port: number | undefined
  readonly state: 'draining' | 'sealed'
  /** Seconds. */
  readonly ttl: number
}

export interface StoredEntry extends Omit<Entry, 'ttl'> {
  /** Seconds since the epoch. */
  readonly expires: number
  /** The generation since which it is what it is. */
  readonly since: number
  bypasses: number
  /** Requests that were sent there although it is sealed. */
  late: number
}

export type Look = 'free' | 'draining' | 'sealed'

/** The entries in a gateway's shared memory. */
export interface DenyList {
  readonly size: number
  /** Goes up with each change; a renewal is none. */
  readonly generation: number
  /** Bytes. */
  readonly capacity: number
  readonly free: number
  /** Sets, renews or seals; `undefined` when there is no room for another one. */
  put(entry: Entry): StoredEntry | undefined
  /** How many entries went. */
  remove(uids: ReadonlySet<string>): number
  /** The strictest state of all entries that cover the node at this moment. */
  look(ip: string, port: number): Look
  covering(ip: string, port: number): StoredEntry[]
  ofUid(uid: string): StoredEntry[]
  find(entry: Pick<Entry, 'uid' | 'ip' | 'port'>): StoredEntry | undefined
  /** All of an address. */
  on(ip: string): StoredEntry[]
  /** Drops what has expired. */
  sweep(): void
  /** Calls `listener` when an entry of this address is put, sealed, removed or dropped. Returns what ends it. */
  onChange(listener: (ip: string) => void): () => void
  all(): StoredEntry[]
}

/** What a sealed entry takes in the plugin's dictionary, as measured with uids of 36 letters: three keys of 128 or 256 bytes. */
export const ENTRY_BYTES = 665

/**
 * @param capacity in bytes
 * @param now seconds since the epoch
 */
export function createDenyList(capacity: number, now: () => number): DenyList {
  const entries = new Map<string, StoredEntry>()
  const byIp: Index = new Map()
  const byUid: Index = new Map()
  const listeners = new Set<(ip: string) => void>()
  let generation = 0

  const changed = (ip: string): void => {
    for (const listener of listeners) listener(ip)
  }
  const forget = (key: string, entry: StoredEntry): void => {
    entries.delete(key)
    unindex(byIp, entry.ip, entry)
    unindex(byUid, entry.uid, entry)
  }
  // Expiry takes effect at the very look, whoever cleans up when.
  const live = (found: Iterable<StoredEntry> = []): StoredEntry[] => {
    const at = now()
    return [...found].filter(entry => entry.expires > at)
  }
  const dropExpired = (): void => {
    const at = now()
    for (const [key, entry] of entries) {
      if (entry.expires > at) continue
      forget(key, entry)
      changed(entry.ip)
    }
  }
  const covering = (ip: string, port: number): StoredEntry[] =>
    live(byIp.get(ip)).filter(entry => (entry.port ?? port) === port)
  return {
    get size() {
      return entries.size
    },
    get generation() {
      return generation
    },
    capacity,
    get free() {
      return capacity - entries.size * ENTRY_BYTES
    },
    put: ({ uid, ip, port, state, ttl }) => {
      if ((entries.size + 1) * ENTRY_BYTES > capacity) dropExpired()
      const key = keyOf({ uid, ip, port })
      const old = entries.get(key)
      if (!old && (entries.size + 1) * ENTRY_BYTES > capacity) return undefined
      const alive = old !== undefined && old.expires > now()
      const sealed = state === 'sealed' || (alive && old.state === 'sealed')
      if (old) forget(key, old)
      const isNews = !alive || sealed !== (old.state === 'sealed')
      if (isNews) generation += 1
      const entry: StoredEntry = {
        uid,
        ip,
        port,
        state: sealed ? 'sealed' : 'draining',
        expires: now() + ttl,
        since: isNews ? generation : old.since,
        bypasses: alive ? old.bypasses : 0,
        late: alive ? old.late : 0
      }
      entries.set(key, entry)
      index(byIp, ip, entry)
      index(byUid, uid, entry)
      if (isNews) changed(ip)
      return entry
    },
    remove: uids => {
      dropExpired()
      let removed = 0
      for (const [key, entry] of entries) {
        if (!uids.has(entry.uid)) continue
        forget(key, entry)
        removed += 1
        generation += 1
        changed(entry.ip)
      }
      return removed
    },
    look: (ip, port) => {
      if (entries.size === 0) return 'free'
      const found = covering(ip, port)
      if (found.length === 0) return 'free'
      return found.some(entry => entry.state === 'sealed') ? 'sealed' : 'draining'
    },
    covering,
    find: ({ uid, ip, port }) =>
      live([entries.get(keyOf({ uid, ip, port }))].filter(e => e !== undefined))[0],
    ofUid: uid => live(byUid.get(uid)),
    on: ip => live(byIp.get(ip)),
    sweep: dropExpired,
    onChange: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    all: () => live(entries.values())
  }
}

const keyOf = ({ uid, ip, port }: Pick<Entry, 'uid' | 'ip' | 'port'>): string =>
  JSON.stringify([uid, ip, port])

type Index = Map<string, Set<StoredEntry>>

const index = (by: Index, name: string, entry: StoredEntry): void => {
  by.set(name, (by.get(name) ?? new Set<StoredEntry>()).add(entry))
}

const unindex = (by: Index, name: string, entry: StoredEntry): void => {
  const others = by.get(name)
  others?.delete(entry)
  if (others?.size === 0) by.delete(name)
}
