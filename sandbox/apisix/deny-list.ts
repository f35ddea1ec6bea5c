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
  /** The addresses that take over, by port of the ending pod. In a put, `undefined` leaves them as they are. */
  readonly successors?: Successors | undefined
  /** The revision of the API server up to which the agent that puts it knows the pods. */
  readonly asOf?: number | undefined
}

export type Successors = Readonly<Record<string, readonly Address[]>>

export interface Address {
  /** Canonical. */
  readonly ip: string
  readonly port: number
}

export interface StoredEntry extends Omit<Entry, 'ttl' | 'asOf'> {
  /** The revision as of which its successors were named. */
  readonly named: Remembered | undefined
  /** Seconds since the epoch. */
  readonly expires: number
  /** The generation in which the entry got its present state. */
  readonly since: number
  /** When it was sealed, in seconds since the epoch; `undefined` until then. */
  readonly sealedAt: number | undefined
  /** When an ordinary request to the address last finished, in seconds since the epoch; 0: none has since the entry came. */
  finishedAt: number
  bypasses: number
  /** Requests that were sent there although it is sealed. */
  late: number
}

/** A revision that counts for a while. */
interface Remembered {
  readonly revision: number
  /** Seconds since the epoch. */
  readonly until: number
}

/** How long a revision counts, in seconds. */
const REMEMBERED = 120

type Look = 'free' | 'draining' | 'sealed'

/** The entries in a gateway's shared memory. */
export interface DenyList {
  readonly size: number
  /** Goes up with each change; a renewal is not a change. */
  readonly generation: number
  /** Bytes. */
  readonly capacity: number
  readonly free: number
  /** Sets, renews or seals an entry; `undefined` if there is no room for a new one, or if it is outdated. */
  put(entry: Entry): StoredEntry | undefined
  /** Whether the entries of this pod were removed as of a later revision. */
  isOutdated(entry: Pick<Entry, 'uid' | 'asOf'>): boolean
  /** Returns how many entries were removed. Puts as of a revision before `asOf` are refused for a while. */
  remove(uids: ReadonlySet<string>, asOf?: number): number
  /** The strictest state of all entries that cover the node at this moment. */
  look(ip: string, port: number): Look
  covering(ip: string, port: number): StoredEntry[]
  /** The free successors of a denied node. An ending successor leads to its own. `met` gets every successor found, even a denied one. */
  following(ip: string, port: number, met?: Map<string, Address>): Address[]
  /** Entries that name an address among their successors. */
  naming(ip: string): StoredEntry[]
  ofUid(uid: string): StoredEntry[]
  find(entry: Pick<Entry, 'uid' | 'ip' | 'port'>): StoredEntry | undefined
  /** All entries of an address. */
  on(ip: string): StoredEntry[]
  /** Removes expired entries. */
  sweep(): void
  /** Calls `listener` when an entry of this address is put, sealed, removed or dropped. Returns the function that removes the listener. */
  onChange(listener: (ip: string) => void): () => void
  all(): StoredEntry[]
}

/** Bytes of a sealed entry in the plugin's dictionary, measured with uids of 36 letters: four keys of 128 or 256 bytes. */
export const ENTRY_BYTES = 788

/** The longest chain of successors of successors that is followed. */
const STEPS = 8

export function createDenyList(capacity: number, now: () => number): DenyList {
  const entries = new Map<string, StoredEntry>()
  const byIp: Index = new Map()
  const byUid: Index = new Map()
  const bySuccessor: Index = new Map()
  const listeners = new Set<(ip: string) => void>()
  const removed = new Map<string, Remembered>()
  let generation = 0

  /** Whether an agent knows less than the revision shows that another one knew. */
  const isBefore = (asOf: number | undefined, known: Remembered | undefined): boolean =>
    asOf !== undefined && known !== undefined && known.until > now() && asOf < known.revision
  const isOutdated: DenyList['isOutdated'] = ({ uid, asOf }) => isBefore(asOf, removed.get(uid))

  const changed = (ip: string): void => {
    for (const listener of listeners) listener(ip)
  }
  const forget = (key: string, entry: StoredEntry): void => {
    entries.delete(key)
    unindex(byIp, entry.ip, entry)
    unindex(byUid, entry.uid, entry)
    for (const ip of successorsOf(entry)) unindex(bySuccessor, ip, entry)
  }
  // An expired entry has no effect, whether or not it has been removed yet.
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
  const isFree = ({ ip, port }: Address): boolean => covering(ip, port).length === 0
  const following = (
    ip: string,
    port: number,
    met = new Map<string, Address>(),
    steps = STEPS
  ): Address[] => {
    const free: Address[] = []
    for (const to of covering(ip, port).flatMap(({ successors }) => successors?.[port] ?? [])) {
      if (met.has(`${to.ip} ${to.port}`)) continue
      met.set(`${to.ip} ${to.port}`, to)
      if (isFree(to)) free.push(to)
      else if (steps > 1) free.push(...following(to.ip, to.port, met, steps - 1))
    }
    return free
  }
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
    isOutdated,
    put: ({ uid, ip, port, state, ttl, successors: put, asOf }) => {
      if (isOutdated({ uid, asOf })) return undefined
      if ((entries.size + 1) * ENTRY_BYTES > capacity) dropExpired()
      const key = keyOf({ uid, ip, port })
      const old = entries.get(key)
      if (!old && (entries.size + 1) * ENTRY_BYTES > capacity) return undefined
      const alive = old !== undefined && old.expires > now()
      const sealed = state === 'sealed' || (alive && old.state === 'sealed')
      const kept = alive ? old.successors : undefined
      const mayName = put !== undefined && !isBefore(asOf, alive ? old.named : undefined)
      const successors = mayName ? put : kept
      if (old) forget(key, old)
      const isNews =
        !alive || sealed !== (old.state === 'sealed') || JSON.stringify(successors) !== JSON.stringify(kept)
      if (isNews) generation += 1
      const entry: StoredEntry = {
        uid,
        ip,
        port,
        state: sealed ? 'sealed' : 'draining',
        expires: now() + ttl,
        since: isNews ? generation : old.since,
        sealedAt: sealed ? ((alive ? old.sealedAt : undefined) ?? now()) : undefined,
        finishedAt: alive ? old.finishedAt : 0,
        bypasses: alive ? old.bypasses : 0,
        late: alive ? old.late : 0,
        successors,
        named:
          mayName && asOf !== undefined
            ? { revision: asOf, until: now() + REMEMBERED }
            : alive
              ? old.named
              : undefined
      }
      entries.set(key, entry)
      index(byIp, ip, entry)
      index(byUid, uid, entry)
      for (const successor of successorsOf(entry)) index(bySuccessor, successor, entry)
      if (isNews) changed(ip)
      return entry
    },
    remove: (uids, asOf) => {
      dropExpired()
      for (const uid of asOf === undefined ? [] : uids)
        if (!isBefore(asOf, removed.get(uid)))
          removed.set(uid, { revision: asOf ?? 0, until: now() + REMEMBERED })
      let count = 0
      for (const [key, entry] of entries) {
        if (!uids.has(entry.uid)) continue
        forget(key, entry)
        count += 1
        generation += 1
        changed(entry.ip)
      }
      return count
    },
    look: (ip, port) => {
      if (entries.size === 0) return 'free'
      const found = covering(ip, port)
      if (found.length === 0) return 'free'
      return found.some(entry => entry.state === 'sealed') ? 'sealed' : 'draining'
    },
    covering,
    following: (ip, port, met) => following(ip, port, met),
    naming: ip => live(bySuccessor.get(ip)),
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

const successorsOf = ({ successors = {} }: StoredEntry): ReadonlySet<string> =>
  new Set(
    Object.values(successors)
      .flat()
      .map(({ ip }) => ip)
  )

type Index = Map<string, Set<StoredEntry>>

const index = (by: Index, name: string, entry: StoredEntry): void => {
  by.set(name, (by.get(name) ?? new Set<StoredEntry>()).add(entry))
}

const unindex = (by: Index, name: string, entry: StoredEntry): void => {
  const others = by.get(name)
  others?.delete(entry)
  if (others?.size === 0) by.delete(name)
}
