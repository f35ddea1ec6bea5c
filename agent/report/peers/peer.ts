import { createExchange, TooSlow } from '../../gateway/apisix/http.ts'
import { TooLong } from '../../base/json-reader.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { AgentView } from '../snapshot/snapshot.ts'
import type { DrainView } from '../snapshot/drain-view.ts'
import { SNAPSHOT_VERSION } from '../snapshot/snapshot.ts'
import { aheadBy } from './clocks.ts'
import { readShare, type Share } from './share.ts'

/** Polls one other agent once a second. Nothing waits for it, and its failures are only displayed. */
export interface Peer {
  /** `undefined` until it has answered or is lost, and for this agent itself. */
  view(): AgentView | undefined
  /** The id of its start; empty until it has answered. */
  id(): string
  /** All its drains, by its last answer; times are by its clock. */
  drains(): ReadonlyMap<string, DrainView>
  /** How far its clock is ahead of this agent's, in ms. */
  ahead(): number
  stop(): Promise<void>
}

interface PeerOptions {
  /** `host:port`, without a name: `10.0.0.7:8080` or `[fd00::7]:8080`. */
  readonly address: string
  /** The id of this start of this agent. */
  readonly id: string
  /** The value of the Cookie header that admits this agent. */
  readonly pass: () => string
  readonly heard: (share: Share, drains: ReadonlyMap<string, DrainView>, ahead: number) => void
  readonly clock: Clock
  readonly log: Log
}

/** The pause between an answer and the next request, in ms. */
const EVERY_MS = 1000
/** The time for one request and its answer, in ms. */
const ANSWER_MS = 2000
/** After this time without an answer, an agent is lost, in ms. A stale DNS record takes less time to disappear. */
export const LOST_MS = 10_000
/** The largest accepted answer, in bytes: the whole history of a large cluster takes a few MiB. */
const LARGEST = 16 * 1024 * 1024
/** Clocks that are further apart than this are shown as a problem, in ms. */
const APART_MS = 1000

interface Failure {
  readonly link: 'lost' | 'other'
  readonly problem: string
}

/** Begins to poll one other agent. */
export function startPeer({ address, id, pass, heard, clock, log }: PeerOptions): Peer {
  const client = createExchange({ keepAlive: true, maxBytes: LARGEST })
  const ended = new AbortController()
  const startedAt = clock.now()
  const drains = new Map<string, DrainView>()
  let last: { readonly share: Share; readonly at: Millis; readonly apart: string } | undefined
  let ahead = 0
  let failure: Failure | undefined
  let isSelf = false
  let wasLost = false

  const ask = async (): Promise<void> => {
    const { agent, seq = 0 } = last?.share ?? {}
    const query = new URLSearchParams({ of: agent?.id ?? '', after: String(seq), from: id })
    const url = `http://${address}/api/agent?${query.toString()}`
    const askedAt = clock.now()
    const { status, data } = await client
      .ask({ method: 'GET', url, timeoutMs: ANSWER_MS, headers: { cookie: pass() }, signal: ended.signal })
      .catch((error: unknown) => {
        if (error instanceof TooSlow)
          throw new Refused(noAnswer(address, `nothing within ${ANSWER_MS / 1000} s`))
        throw error
      })
    if (status !== 200) throw new Refused(refusalOf(address, status))
    const read = readShare(data)
    if (read.kind === 'garbled')
      throw new Refused(`${address} does not answer as an agent does: check serve.dashboard.peers`)
    if (read.kind === 'other') {
      failure = { link: 'other', problem: versionProblem(read.version) }
      return
    }
    const { share } = read
    if (share.agent.id === id) {
      isSelf = true
      return
    }
    take(share, askedAt)
  }

  const take = (share: Share, askedAt: Millis): void => {
    if (share.agent.id !== last?.share.agent.id) {
      drains.clear()
      ahead = 0
    }
    const live = new Set(share.live)
    for (const uid of drains.keys()) if (!live.has(uid)) drains.delete(uid)
    for (const drain of share.drains) if (live.has(drain.uid)) drains.set(drain.uid, drain)
    const at = clock.now()
    last = { share, at, apart: clockProblem(share.at, askedAt, at) }
    ahead = aheadBy(ahead, { at: share.at, askedAt, heardAt: at })
    failure = undefined
    heard(share, drains, ahead)
  }

  const isLost = (): boolean => {
    const since = last?.at ?? startedAt
    return failure?.link === 'lost' && clock.now() - since > LOST_MS
  }

  const report = (): void => {
    const lost = isLost()
    if (lost === wasLost) return
    wasLost = lost
    if (lost)
      log.warn(
        { agent: address, why: failure?.problem },
        'another agent is lost: the dashboard shows its last known state'
      )
    else log.info({ agent: address }, 'the other agent answers again')
  }

  const running = (async () => {
    while (!ended.signal.aborted) {
      try {
        await ask()
      } catch (error) {
        failure = { link: 'lost', problem: problemOf(address, error) }
      }
      if (ended.signal.aborted || isSelf) return
      report()
      await clock.sleep(EVERY_MS, ended.signal).catch(() => {})
    }
  })()

  return {
    view() {
      if (isSelf) return undefined
      const lost = isLost()
      if (failure?.link === 'other') return { ...unknown(address), link: 'other', problem: failure.problem }
      if (!last)
        return lost ? { ...unknown(address), link: 'lost', problem: failure?.problem ?? '' } : undefined
      const { share, at, apart } = last
      return {
        ...share.agent,
        startedAt: share.agent.startedAt === null ? null : share.agent.startedAt - ahead,
        address,
        heardAt: at,
        link: lost ? 'lost' : 'live',
        problem: lost ? (failure?.problem ?? '') : apart,
        // Another agent may lead by now.
        leads: share.agent.leads && !lost
      }
    },
    id: () => last?.share.agent.id ?? '',
    drains: () => drains,
    ahead: () => ahead,
    async stop() {
      ended.abort()
      await running
      client.close()
    }
  }
}

/** The view of an agent that has not answered yet: only its address is known. */
export const unknown = (address: string): Omit<AgentView, 'link' | 'problem'> => ({
  id: address,
  name: address,
  address,
  version: null,
  startedAt: null,
  heardAt: null,
  leads: false,
  mode: null,
  dryRun: false,
  missingParts: [],
  proving: 0,
  gateways: 0,
  plugins: []
})

class Refused extends Error {
  override readonly name = 'Refused'
}

function problemOf(address: string, error: unknown): string {
  if (error instanceof Refused) return error.message
  if (error instanceof TooLong)
    return `${address} answers with more than ${LARGEST / 1024 / 1024} MiB: its state is left out`
  const { code, message } = error as NodeJS.ErrnoException
  return noAnswer(address, code ?? message)
}

const noAnswer = (address: string, why: string): string =>
  `no answer from ${address} (${why}): check that an agent runs there, and any NetworkPolicy between the agents`

function refusalOf(address: string, status: number): string {
  if (status === 401) {
    return `${address} refuses this agent: give all agents the same token of the dashboard, and synchronise the clocks of their hosts`
  }
  if (status === 404) {
    return `${address} does not share its state: set serve.dashboard.enabled there, or update it`
  }
  return `${address} answers ${status}: look at the log of that agent`
}

const versionProblem = (version: number): string =>
  `its state has version ${version}, and this agent reads version ${SNAPSHOT_VERSION}: update the older of the two agents`

/** The other agent read its clock between request and answer. */
function clockProblem(at: Millis, askedAt: Millis, heardAt: Millis): string {
  const ahead = at - heardAt > APART_MS ? at - heardAt : 0
  const behind = askedAt - at > APART_MS ? askedAt - at : 0
  if (ahead + behind === 0) return ''
  const by = ((ahead || behind) / 1000).toFixed(1)
  return ahead > 0
    ? `its clock is ${by} s ahead of this agent's: synchronise the clocks of the hosts`
    : `its clock is ${by} s behind this agent's: synchronise the clocks of the hosts`
}
