import type { DenyList, StoredEntry } from './deny-list.ts'
import type { Place, Places } from './places.ts'

/** What all workers say of an entry (docs/barrier-api.md). */
export interface ToldWord {
  readonly said: number
  readonly asked: number
  readonly places: number
  readonly sole: readonly string[]
  readonly hidden: number
  readonly others: readonly {
    readonly places: number
    readonly nodes: readonly string[]
    readonly more: number
  }[]
  readonly cut: number
  readonly tag?: string
}

/** The words of the workers of one gateway. Nothing is done before an agent wants them. */
export interface Words {
  /** An agent wants them from now on. */
  want(): void
  /** Wakes the workers, and waits a few milliseconds for those who are silent. */
  hear(entries: readonly StoredEntry[]): Promise<void>
  /** Undefined before an agent wants it. */
  of(entry: StoredEntry): ToldWord | undefined
  close(): void
}

/** What one worker says of one entry. */
export interface Saying {
  /** The generation of the deny-list that it knew. */
  readonly generation: number
  readonly places: number
  readonly sole: readonly string[]
  /** How many places have these other choices. */
  readonly others: ReadonlyMap<string, number>
  readonly cut: number
}

/** One worker's word, see docs/decisions/0029: what it has said, and what it has to say anew. */
export interface Word {
  /** The generation of which it has spoken; undefined: its word is void. */
  readonly said: number | undefined
  readonly hidden: number
  of(id: string): Saying | undefined
  /** Takes it back, in the step that changes the configuration. `ips`: of the places that are others. */
  void(ips: Iterable<string>): void
  /** The deny-list says something else of this address. */
  touch(ip: string): void
  /** Says what is to be said now. */
  speak(): void
}

export const OTHERS = 8
export const LISTS = 16
export const NAMES = 16

export const entryId = ({ uid, ip, port }: Pick<StoredEntry, 'uid' | 'ip' | 'port'>): string =>
  `${uid}|${ip}|${port ?? ''}`

export function createWord(entries: DenyList, places: () => Places): Word {
  const sayings = new Map<string, Saying>()
  let dirty = new Set(entries.all().map(({ ip }) => ip))
  let said: number | undefined
  let hidden = 0

  // An entry's word is about the other nodes of its places too.
  const concerned = (): Set<string> => {
    const ips = new Set(dirty)
    for (const ip of dirty)
      for (const { nodes } of places().of(ip)) for (const node of nodes ?? []) ips.add(node.ip)
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

function saying({ ip, port }: StoredEntry, entries: DenyList, places: Places): Saying {
  const about = places
    .of(ip)
    .filter(({ nodes }) => nodes?.some(node => node.ip === ip && (port ?? node.port) === node.port))
  const sole: string[] = []
  const lists = new Map<string, number>()
  for (const place of about) {
    const free = freeOf(place, entries)
    if (free === undefined) sole.push(place.name)
    else lists.set(free, (lists.get(free) ?? 0) + 1)
  }
  const sorted = [...lists].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    generation: entries.generation,
    places: about.length,
    sole: sole.sort().slice(0, NAMES),
    others: new Map(sorted.slice(0, LISTS)),
    cut: sorted.slice(LISTS).reduce((sum, [, n]) => sum + n, 0)
  }
}

/** `more/address:port,…`; undefined where there is none. */
const freeOf = ({ nodes = [] }: Place, entries: DenyList): string | undefined => {
  const all = nodes.filter(({ ip, port }) => entries.look(ip, port ?? 0) === 'free')
  const drawing = all.filter(({ standby }) => !standby)
  const free = (drawing.length > 0 ? drawing : all).map(({ name }) => name)
  if (free.length === 0) return undefined
  return `${Math.max(free.length - OTHERS, 0)}/${free.toSorted().slice(0, OTHERS).join()}`
}
