import { lookup } from 'node:dns/promises'
import type { Clock } from '../../base/clock.ts'
import { deepFreeze } from '../../config/load.ts'
import type { Log } from '../../base/log.ts'
import type { AgentView, Snapshot } from '../snapshot/snapshot.ts'
import type { DrainView } from '../snapshot/drain-view.ts'
import { createBook, type Brief } from './book.ts'
import { LOST_MS, startPeer, unknown, type Peer } from './peer.ts'
import type { Share } from './share.ts'
import { createUnion } from './union.ts'

/** All agents as one, for display only: no decision and no answer rests on another agent's state. */
export interface Agents {
  /** The snapshot of this agent with the drains, answers, lags and totals of all. */
  together(own: Snapshot): Snapshot
  /**
   * All that changed in this agent after its change number `after`; everything if `of` is not the id of this start. `to`: the id of the
   * agent that asks.
   */
  share(of: string, after: number, to: string): Share
  /** Resolves once every live agent has asked again, so it knows the last answers of this one. Rejects when the signal aborts. */
  handOver(signal: AbortSignal): Promise<void>
  /** Begins to poll the other agents. */
  start(): void
  stop(): Promise<void>
}

interface AgentsOptions {
  /** Where the agents are: `host:port`. A name stands for all its addresses. */
  readonly peers: readonly string[]
  readonly brief: () => Brief
  readonly pass: () => string
  /** Called when another agent has answered. */
  readonly changed: () => void
  readonly clock: Clock
  readonly log: Log
  /** Looks up the addresses of a name; default: DNS. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
}

/** The last DNS answer for one configured name, and the problem of the last lookup, if it failed. */
interface Found {
  readonly addresses: readonly string[]
  readonly problem: string
  /** When the problem began, in ms; 0 if there is none. */
  readonly since: number
}

/** The pause between two DNS lookups, in ms. */
const RESOLVE_MS = 2000
/** The most agents that are asked. */
const MOST = 16

export function createAgents(options: AgentsOptions): Agents {
  const { peers, brief, pass, changed, clock, log, resolve = addressesOf } = options
  const book = createBook()
  const union = createUnion()
  const ended = new AbortController()
  const asked = new Map<string, Peer>()
  const found = new Map<string, Found>()
  let wereTooMany = false
  /** Called with the id of each agent that has got a share. */
  let hasAsked = (_id: string): void => {}

  const find = async (entry: string): Promise<void> => {
    const { hostname, port } = new URL(`http://${entry}`)
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    try {
      const addresses = (await resolve(host)).map(
        ip => `${ip.includes(':') ? `[${ip}]` : ip}:${port || '80'}`
      )
      found.set(entry, { addresses, problem: '', since: 0 })
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      const problem = `${host} has no address (${code ?? message}): check serve.dashboard.peers, and the headless Service of the agents`
      const { addresses = [], since = 0 } = found.get(entry) ?? {}
      found.set(entry, { addresses, problem, since: since || clock.now() })
    }
  }
  const askAll = async (): Promise<void> => {
    const all = new Set([...found.values()].flatMap(({ addresses }) => addresses))
    const now = new Set([...all].toSorted().slice(0, MOST))
    const tooMany = all.size > MOST
    if (tooMany && !wereTooMany)
      log.warn(
        { agents: all.size, asked: MOST },
        'there are more agents than one asks: the dashboard lacks some of them'
      )
    wereTooMany = tooMany
    // An address that is no longer in the DNS belonged to an agent that is gone. The book keeps its history.
    const gone = [...asked].filter(([address]) => !now.has(address))
    for (const [address] of gone) asked.delete(address)
    for (const address of now) {
      if (asked.has(address)) continue
      const peer: Peer = startPeer({
        address,
        id: brief().agent.id,
        pass,
        heard(share, drains, ahead) {
          book.hear(brief(), share, drains, ahead)
          changed()
        },
        clock,
        log
      })
      asked.set(address, peer)
    }
    await Promise.all(gone.map(([, peer]) => peer.stop()))
  }
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await Promise.all(peers.map(find))
      if (ended.signal.aborted) return
      await askAll()
      await clock.sleep(RESOLVE_MS, ended.signal).catch(() => {})
    }
  }
  let running: Promise<void> | undefined

  const viewed = (): { readonly view: AgentView; readonly peer: Peer | undefined }[] => [
    ...[...asked.values()].flatMap(peer => {
      const view = peer.view()
      return view ? [{ view, peer }] : []
    }),
    ...[...found].flatMap(([entry, { addresses, problem, since }]) =>
      since > 0 && addresses.length === 0 && clock.now() - since > LOST_MS
        ? [{ view: { ...unknown(entry), link: 'lost' as const, problem }, peer: undefined }]
        : []
    )
  ]

  return {
    together(own) {
      book.note(own)
      const others = viewed().toSorted((a, b) => (a.view.name < b.view.name ? -1 : 1))
      // An agent that ends may never report its own end of a drain that it answered.
      for (const { peer } of others) if (peer) book.complete(peer.id(), peer.drains())
      const drains = union({
        own: book.drains(),
        others: others.flatMap(({ view: { name, link }, peer }) =>
          peer ? [{ name, live: link === 'live', drains: peer.drains(), ahead: peer.ahead() }] : []
        ),
        finished: uid => book.finished(uid),
        now: own.at
      })
      const { past, ...history } = book.history()
      const uids = new Set(drains.map(({ uid }) => uid))
      const isCurrent = ({ phase, uid }: DrainView) => phase !== 'undone' && uids.has(uid)
      return deepFreeze({
        ...own,
        ...history,
        agents: [...own.agents, ...others.map(({ view }) => view)],
        drains,
        past: past.some(isCurrent) ? past.filter(drain => !isCurrent(drain)) : past,
        totals: book.totals()
      })
    },
    share(of, after, to) {
      const own = brief()
      const share = book.share(own, of === own.agent.id ? after : 0)
      hasAsked(to)
      return share
    },
    async handOver(signal) {
      const live = [...asked.values()].filter(peer => peer.view()?.link === 'live')
      const waits = new Set(live.map(peer => peer.id()))
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const settle = () => (waits.size === 0 ? resolve() : signal.aborted && reject(signal.reason as Error))
      hasAsked = id => {
        waits.delete(id)
        settle()
      }
      signal.addEventListener('abort', settle, { once: true })
      settle()
      await promise
    },
    start: () => void (running = run()),
    async stop() {
      ended.abort()
      await running
      await Promise.all([...asked.values()].map(peer => peer.stop()))
    }
  }
}

/** The addresses of a name; an address stands for itself. */
const addressesOf = async (host: string): Promise<readonly string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address)
