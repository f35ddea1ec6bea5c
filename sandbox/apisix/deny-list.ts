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
  let generation = 0

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
    for (const [key, entry] of entries) if (entry.expires <= now()) forget(key, entry)
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
      const key = JSON.stringify([uid, ip, port])
      const old = entries.get(key)
      if (!old && (entries.size + 1) * ENTRY_BYTES > capacity) return undefined
      const alive = old !== undefined && old.expires > now()
      const sealed = state === 'sealed' || (alive && old.state === 'sealed')
      if (old) forget(key, old)
      const entry: StoredEntry = {
        uid,
        ip,
        port,
        state: sealed ? 'sealed' : 'draining',
        expires: now() + ttl,
        bypasses: alive ? old.bypasses : 0,
        late: alive ? old.late : 0
      }
      if (!alive || sealed !== (old.state === 'sealed')) generation += 1
      entries.set(key, entry)
      index(byIp, ip, entry)
      index(byUid, uid, entry)
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
    ofUid: uid => live(byUid.get(uid)),
    all: () => live(entries.values())
  }
}

type Index = Map<string, Set<StoredEntry>>

const index = (by: Index, name: string, entry: StoredEntry): void => {
  by.set(name, (by.get(name) ?? new Set<StoredEntry>()).add(entry))
}

const unindex = (by: Index, name: string, entry: StoredEntry): void => {
  const others = by.get(name)
  others?.delete(entry)
  if (others?.size === 0) by.delete(name)
}
