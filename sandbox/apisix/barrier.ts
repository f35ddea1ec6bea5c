import { randomUUID } from 'node:crypto'
import { createDenyList, type DenyList, type StoredEntry } from './deny-list.ts'
import type { ToldWord, Words } from './word.ts'
import { createInflightCounts, type Inflight, type InflightCounts } from './inflight.ts'

interface BarrierCounts {
  /** Requests that were moved to another node before they connected. */
  moved: number
  /** Requests that got a draining node because no other node could be picked. */
  bypasses: number
  /** Requests refused because only sealed nodes were left. */
  refused: number
  /** Requests that a successor got. */
  succeeded: number
  /** Errors caught inside the plugin's hooks. */
  errors: number
}

/** An entry's state as reported (docs/barrier-api.md). */
interface Told {
  readonly uid: string
  readonly ip: string
  readonly port?: number
  readonly state: 'draining' | 'sealed'
  /** Seconds left. */
  readonly ttl: number
  readonly inflight: Inflight
  readonly bypasses: number
  readonly late: number
  /** Seconds since its seal; absent until then. */
  readonly sealedFor?: number
  /** Seconds for which it has been sealed with no ordinary request in flight; absent until then. */
  readonly idleFor?: number
  readonly word?: ToldWord
}

/** The plugin in one gateway: a deny-list and counts, in memory that all workers share. */
export interface Barrier {
  /** Changes on a full restart, when the entries are lost. */
  readonly instance: string
  readonly entries: DenyList
  readonly inflight: InflightCounts
  readonly counts: BarrierCounts
  /** Requests that were sent to a sealed entry, counted per attempt and entry. */
  readonly late: number
  /** The APISIX internals that a worker lacks; empty if the worker is fit. An unfit worker ignores the entries, and counts nothing. */
  unfit(pid: number): readonly string[]
  setUnfit(pid: number, missing: readonly string[]): void
  /** Problems that make the plugin report `unfit`, although it works normally. */
  doubts: readonly string[]
  /** How far a test has set the wall clock ahead. Entries expire by the monotonic clock, which a test cannot set. */
  clockAheadMs: number
  /** The time by the wall clock, in seconds since the epoch. */
  now(): number
  /** Removes a worker that is gone, with its counts. */
  drop(pid: number): void
  bypassed(ip: string, port: number): void
  /** Counts a request that an unfit worker sends to this address, at each sealed entry. */
  passed(ip: string, port: number): void
  /** The wire version of the plugin. */
  wire: number
  /** Whether each worker's stream subsystem takes part. The stand-in has no L4 traffic: it only reports this. */
  l4: boolean
  /** The workers' reports on entries; set by the gateway. */
  words: Words | undefined
  /** The entry's state, with the counts of this moment. */
  told(entry: StoredEntry): Told
  /**
   * Calls `listener` once when a pod is sealed, and once when a sealed pod has no ordinary request in flight. No agent has to
   * ask for that. Returns the function that removes the listener.
   */
  onConfirmed(listener: (uid: string, what: Confirmed) => void): () => void
  /**
   * Resolves when at least one of `uids` has nothing in flight any more (or has no entry), after `waitSeconds`, or when the
   * signal aborts.
   */
  idle(
    uids: readonly string[],
    until: 'requests' | 'all',
    waitSeconds: number,
    signal: AbortSignal
  ): Promise<void>
}

/** See `WIRE` in request.lua. */
const WIRE = 1

/** The size that APISIX gives the plugin's dictionary: 10 MiB. */
const DEFAULT_CAPACITY = 10 * 1024 * 1024

const epochSeconds = (): number => (performance.timeOrigin + performance.now()) / 1000

/** `sealed`: every entry of a pod is sealed. `idle`: in addition, no ordinary request is in flight to it. */
export type Confirmed = 'sealed' | 'idle'

export function createBarrier({ capacity = DEFAULT_CAPACITY }: { capacity?: number } = {}): Barrier {
  const entries = createDenyList(capacity, epochSeconds)
  const inflight = createInflightCounts()
  const unfit = new Map<number, readonly string[]>()
  const counts: BarrierCounts = { moved: 0, bypasses: 0, refused: 0, errors: 0, succeeded: 0 }

  let late = 0
  const confirmed = new Set<string>()
  const listeners = new Set<(uid: string, what: Confirmed) => void>()

  const word = (entry: StoredEntry): { word?: ToldWord } => {
    const said = barrier.words?.of(entry)
    return said ? { word: { ...said, ...(barrier.l4 && { l4: true }) } } : {}
  }
  const ages = ({ sealedAt, finishedAt }: StoredEntry, requests: number) => {
    if (sealedAt === undefined) return {}
    const since = (at: number) => epochSeconds() - at
    return {
      sealedFor: since(sealedAt),
      ...(requests === 0 && { idleFor: since(Math.max(sealedAt, finishedAt)) })
    }
  }
  /** The stand-in has no long-lived requests but upgraded connections. */
  const withKinds = ({ requests, long }: Inflight) => ({
    requests,
    long,
    ...(long > 0 && { upgraded: long, sse: 0, streams: 0, oldest: 0 })
  })
  const told = (entry: StoredEntry): Told => ({
    uid: entry.uid,
    ip: entry.ip,
    ...(entry.port === undefined ? {} : { port: entry.port }),
    state: entry.state,
    ttl: Math.max(entry.expires - epochSeconds(), 0),
    inflight: withKinds(inflight.of(entry.ip, entry.port)),
    bypasses: entry.bypasses,
    late: entry.late,
    ...ages(entry, inflight.of(entry.ip, entry.port).requests),
    ...word(entry)
  })
  const isIdle = (uid: string, until: 'requests' | 'all'): boolean =>
    entries.ofUid(uid).every(({ ip, port }) => {
      const { requests, long } = inflight.of(ip, port)
      return requests === 0 && (until === 'requests' || long === 0)
    })

  const confirm = (uid: string, what: Confirmed): void => {
    if (confirmed.has(`${what} ${uid}`)) return
    confirmed.add(`${what} ${uid}`)
    for (const listener of listeners) listener(uid, what)
  }
  const moved = (ip: string | undefined): void => {
    for (const { uid } of ip === undefined ? entries.all() : entries.on(ip)) {
      if (!entries.ofUid(uid).every(({ state }) => state === 'sealed')) continue
      confirm(uid, 'sealed')
      if (isIdle(uid, 'requests')) confirm(uid, 'idle')
    }
  }
  entries.onChange(moved)
  inflight.onFallen(moved)
  inflight.onFinished((ip, port) => {
    for (const entry of entries.covering(ip, port)) entry.finishedAt = epochSeconds()
  })

  const barrier: Barrier = {
    instance: randomUUID(),
    entries,
    inflight,
    counts,
    get late() {
      return late
    },
    doubts: [],
    words: undefined,
    wire: WIRE,
    l4: false,
    clockAheadMs: 0,
    now() {
      return epochSeconds() + this.clockAheadMs / 1000
    },
    unfit: pid => unfit.get(pid) ?? [],
    setUnfit: (pid, missing) => {
      unfit.set(pid, missing)
    },
    drop: pid => {
      unfit.delete(pid)
      inflight.drop(pid)
    },
    bypassed: (ip, port) => {
      counts.bypasses += 1
      for (const entry of entries.covering(ip, port)) entry.bypasses += 1
    },
    passed: (ip, port) => {
      for (const entry of entries.covering(ip, port)) {
        if (entry.state !== 'sealed') continue
        entry.late += 1
        late += 1
      }
    },
    told,
    onConfirmed: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    idle: (uids, until, waitSeconds, signal) =>
      new Promise(resolve => {
        const anyIdle = (): boolean => uids.some(uid => isIdle(uid, until))
        if (uids.length === 0 || waitSeconds === 0 || signal.aborted || anyIdle()) return resolve()
        const end = (): void => {
          clearTimeout(timer)
          stop()
          signal.removeEventListener('abort', end)
          resolve()
        }
        const timer = setTimeout(end, waitSeconds * 1000)
        const asked = new Set(uids.flatMap(uid => entries.ofUid(uid)).map(({ ip }) => ip))
        const stop = inflight.onFallen(ip => {
          if ((ip === undefined || asked.has(ip)) && anyIdle()) end()
        })
        signal.addEventListener('abort', end)
      })
  }
  return barrier
}
