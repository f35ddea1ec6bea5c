import type { Json } from './json.ts'
import type { LuaGateway } from './vm/gateway.ts'

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
  /** The addresses that take over, by port of the ending pod, as `address:port`. */
  readonly successors?: Readonly<Record<string, readonly string[]>> | undefined
}

export interface StoredEntry extends Entry {
  /** Seconds since the epoch. */
  readonly expires: number
  readonly bypasses: number
  readonly late: number
}

/** The deny-list of a gateway. */
interface Entries {
  readonly size: number
  /** Sets, renews or seals an entry. Throws if it is refused. */
  put(entry: Entry, asOf?: number): void
  /** Returns how many entries were removed. */
  remove(uids: ReadonlySet<string>, asOf?: number): number
  /** Whether puts as of this revision are refused. */
  isOutdated(entry: { readonly uid: string; readonly asOf: number }): boolean
  /** The strictest state of all entries that cover the node. */
  look(ip: string, port: number): 'free' | 'draining' | 'sealed'
  ofUid(uid: string): StoredEntry[]
  all(): StoredEntry[]
}

type Kind = 'requests' | 'long'

const COUNTS = ['moved', 'bypasses', 'refused', 'errors', 'succeeded'] as const

/** `sealed`: every entry of a pod is sealed. `idle`: in addition, no ordinary request is in flight to it. */
export type Confirmed = 'sealed' | 'idle'

/** The plugin in one gateway: what its workers share. */
export interface Barrier {
  readonly instance: string
  readonly entries: Entries
  readonly inflight: {
    /** Counts a request in the first worker, and sends none. */
    up(ip: string, port: number, kind: Kind): void
    down(ip: string, port: number, kind: Kind): void
    of(ip: string, port: number | undefined): Readonly<Record<Kind, number>>
    /** The sum over all workers and addresses. */
    readonly total: number
  }
  readonly counts: Record<(typeof COUNTS)[number], number>
  /** Makes a worker report that it is unfit; an empty text ends that. */
  setUnfit(pid: number, why: string): void
  /** Whether a second nginx serves on the same ports: the plugin then reports that it is unfit. */
  second: boolean
  /** How far a test has set the wall clock ahead. */
  clockAheadMs: number
  /** Runs Lua in each worker. */
  run(lua: string): void
  /** Starts or ends a stream subsystem of each worker that takes part. The stand-in has no L4 traffic. */
  coverL4(on: boolean): void
  /** Calls `listener` once when a pod is sealed, and once when a sealed pod has no ordinary request in flight. No agent has to ask. */
  onConfirmed(listener: (uid: string, what: Confirmed) => void): void
  close(): void
}

/** How often a gateway looks by itself for what it confirms, in ms. */
const CONFIRM_MS = 50

/** @param stream starts the stream subsystem of each worker, or ends it */
export function createBarrier(gateway: LuaGateway, stream: (on: boolean) => void): Barrier {
  const see = (name: string, ...args: readonly Json[]): Json => gateway.see(name, ...args)
  const state = { second: false, ahead: 0 }
  const confirmed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const all = () => see('all') as unknown as StoredEntry[]
  const body = (what: Readonly<Record<string, unknown>>) => JSON.stringify(what)
  return {
    get instance() {
      return see('instance') as string
    },
    entries: {
      get size() {
        return Number(see('size'))
      },
      put: (entry, asOf) => void see('put', body({ entries: [entry], asOf })),
      remove: (uids, asOf) => Number(see('remove', body({ uids: [...uids], asOf }))),
      isOutdated: ({ uid, asOf }) => see('outdated', uid, asOf) === true,
      look: (ip, port) => see('look', ip, port) as 'free' | 'draining' | 'sealed',
      ofUid: uid => all().filter(entry => entry.uid === uid),
      all
    },
    inflight: {
      up: (ip, port, kind) => void see('enter', ip, port, kind),
      down: (ip, port, kind) => void see('leave', ip, port, kind),
      of: (ip, port) => see('inflight', ip, ...(port === undefined ? [] : [port])) as Record<Kind, number>,
      get total() {
        return Number(see('total'))
      }
    },
    counts: Object.defineProperties(
      {} as Record<(typeof COUNTS)[number], number>,
      Object.fromEntries(
        COUNTS.map(name => [
          name,
          {
            enumerable: true,
            get: () => see('count', name),
            set: (value: Json) => see('set_count', name, value)
          }
        ])
      )
    ),
    run: lua => void see('run', lua),
    setUnfit: (pid, why) => void see('unfit', pid, why),
    get second() {
      return state.second
    },
    set second(is) {
      state.second = is
      see('second', is)
    },
    get clockAheadMs() {
      return state.ahead
    },
    set clockAheadMs(ms) {
      state.ahead = ms
      see('ahead', ms / 1000)
    },
    coverL4: stream,
    onConfirmed: listener => {
      const busy = new Set<string>()
      const confirm = (uid: string, what: Confirmed): void => {
        if (confirmed.has(`${what} ${uid}`)) return
        confirmed.add(`${what} ${uid}`)
        listener(uid, what)
      }
      const look = (): void => {
        busy.clear()
        for (const [uid, requests] of Object.entries(see('sealed') as Record<string, number>)) {
          confirm(uid, 'sealed')
          if (requests === 0) confirm(uid, 'idle')
          else busy.add(uid)
        }
      }
      gateway.onAct(what => (what === 'answer' || busy.size > 0) && look())
      // The requests of a worker that is killed do not end one by one.
      timer ??= setInterval(look, CONFIRM_MS)
      timer.unref()
    },
    close: () => clearInterval(timer)
  }
}
