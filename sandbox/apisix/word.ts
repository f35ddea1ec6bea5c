import type { Address, DenyList, StoredEntry } from './deny-list.ts'
import type { Place, Places } from './places.ts'

/** The report of all workers on an entry (docs/barrier-api.md). */
export interface ToldWord {
  readonly said: number
  readonly asked: number
  readonly places: number
  readonly sole: readonly string[]
  /** The places in which only successors are left. */
  readonly succeeded: readonly string[]
  readonly hidden: number
  readonly others: readonly {
    readonly places: number
    readonly nodes: readonly string[]
    readonly more: number
  }[]
  readonly cut: number
  readonly tag?: string
  /** Set if the word covers the stream subsystem (L4) too. */
  readonly l4?: boolean
}

/** The words of the workers of one gateway. Workers begin only when an agent asks for them. */
export interface Words {
  /** Called when an agent asks for words: from then on workers make them. */
  want(): void
  /** Wakes the workers, and waits a few milliseconds for those that have not reported. */
  hear(entries: readonly StoredEntry[]): Promise<void>
  /** Undefined until an agent asks for words. */
  of(entry: StoredEntry): ToldWord | undefined
  close(): void
}

/** One worker's report on one entry. */
export interface Saying {
  /** The generation of the deny-list that the worker knew. */
  readonly generation: number
  readonly places: number
  readonly sole: readonly string[]
  readonly succeeded: readonly string[]
  /** Each list of other choices, with the number of places that have it. */
  readonly others: ReadonlyMap<string, number>
  readonly cut: number
}

/** One worker's word (docs/decisions/0037): its reports so far, and those that are due. */
export interface Word {
  /** The generation on which the worker has reported; undefined: its word is void. */
  readonly said: number | undefined
  readonly hidden: number
  of(id: string): Saying | undefined
  /** Withdraws the word, in the step that changes the configuration. `ips`: the addresses of changed places. */
  void(ips: Iterable<string>): void
  /** The deny-list has changed for this address. */
  touch(ip: string): void
  /** Makes the reports that are due. */
  speak(): void
}

const OTHERS = 8
export const LISTS = 16
export const NAMES = 16

export const entryId = ({ uid, ip, port }: Pick<StoredEntry, 'uid' | 'ip' | 'port'>): string =>
  `${uid}|${ip}|${port ?? ''}`

export function createWord(entries: DenyList, places: () => Places): Word {
  const sayings = new Map<string, Saying>()
  const followed = new Map<string, ReadonlySet<string>>()
  let dirty = new Set(entries.all().map(({ ip }) => ip))
  let said: number | undefined
  let hidden = 0

  // The word about an entry also names the other nodes of its places.
  const concerned = (): Set<string> => {
    const ips = new Set(dirty)
    for (const ip of dirty)
      for (const way of waysTo(ip, entries))
        for (const { nodes } of places().of(way)) for (const node of nodes ?? []) ips.add(node.ip)
    // Successors are in the places of the pods that they take over from. Successors that a change has removed count too.
    for (const ip of ips) {
      const now = entries.on(ip).flatMap(({ successors = {} }) => Object.values(successors).flat())
      for (const to of now) ips.add(to.ip)
      for (const to of followed.get(ip) ?? []) ips.add(to)
      followed.set(ip, new Set(now.map(to => to.ip)))
    }
    return ips
  }
  return {
    get said() {
      return said
    },
    get hidden() {
      return hidden
    },
    of: id => sayings.get(id),
    void: ips => {
      said = undefined
      for (const ip of ips) dirty.add(ip)
    },
    touch: ip => {
      dirty.add(ip)
    },
    speak: () => {
      const { generation } = entries
      hidden = places().hidden
      if (said === generation && dirty.size === 0) return
      for (const ip of concerned())
        for (const entry of entries.on(ip)) sayings.set(entryId(entry), saying(entry, entries, places()))
      if (sayings.size > entries.size) {
        const held = new Set(entries.all().map(entryId))
        for (const id of sayings.keys()) if (!held.has(id)) sayings.delete(id)
      }
      dirty = new Set()
      said = generation
    }
  }
}

/** The addresses that can lead a request to `ip`: `ip` itself, and the addresses that have it as a successor. */
function waysTo(ip: string, entries: DenyList, ways = new Set<string>()): ReadonlySet<string> {
  ways.add(ip)
  for (const entry of entries.naming(ip)) if (!ways.has(entry.ip)) waysTo(entry.ip, entries, ways)
  return ways
}

function saying({ ip, port }: StoredEntry, entries: DenyList, places: Places): Saying {
  const isAt = (node: { readonly ip: string; readonly port: number | undefined }): boolean =>
    node.ip === ip && (port ?? node.port) === node.port
  const sole: string[] = []
  const succeeded: string[] = []
  const lists = new Map<string, number>()
  let about = 0
  for (const place of new Set([...waysTo(ip, entries)].flatMap(way => places.of(way)))) {
    const { nodes = [] } = place
    const met = new Map<string, Address>()
    const own = freeOf(place, entries)
    const following = own === undefined ? nodes.flatMap(n => entries.following(n.ip, n.port ?? 0, met)) : []
    if (!nodes.some(isAt) && !met.values().some(isAt)) continue
    about += 1
    const free =
      own ?? listOf(following.map(to => (to.ip.includes(':') ? `[${to.ip}]` : to.ip) + `:${to.port}`))
    if (following.length > 0) succeeded.push(place.name)
    if (free === undefined) sole.push(place.name)
    else lists.set(free, (lists.get(free) ?? 0) + 1)
  }
  const sorted = [...lists].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    generation: entries.generation,
    places: about,
    sole: sole.sort().slice(0, NAMES),
    succeeded: succeeded.sort().slice(0, NAMES),
    others: new Map(sorted.slice(0, LISTS)),
    cut: sorted.slice(LISTS).reduce((sum, [, n]) => sum + n, 0)
  }
}

/** The other choices of a place, as `more/address:port,…`; undefined if there are none. */
const freeOf = ({ nodes = [] }: Place, entries: DenyList): string | undefined => {
  const all = nodes.filter(({ ip, port }) => entries.look(ip, port ?? 0) === 'free')
  const drawing = all.filter(({ standby }) => !standby)
  return listOf((drawing.length > 0 ? drawing : all).map(({ name }) => name))
}

const listOf = (free: readonly string[]): string | undefined => {
  if (free.length === 0) return undefined
  return `${Math.max(free.length - OTHERS, 0)}/${free.toSorted().slice(0, OTHERS).join()}`
}
