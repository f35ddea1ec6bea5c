import type { V1Lease, V1LeaseSpec, V1ObjectMeta } from '@kubernetes/client-node'
import type { Millis } from '../../rules/drain/facts.ts'
import { fieldsOf, numberOf, textOf } from '../../base/read.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { inTime } from '../transport/connection.ts'

/** The leadership, for display. */
export interface Leadership {
  /** This agent acts as the leader: it holds the Lease, or no holder is known. */
  readonly leads: boolean
  /** The known holder of the Lease. */
  readonly holder: string | undefined
  /** `namespace/name` of the Lease; `undefined` if there is no election. */
  readonly lease: string | undefined
  /** The reason, in words. */
  readonly why: string
}

/**
 * Selects one of several agents for work that is needed only once. It saves work and guarantees nothing (decision 0008). Such work must
 * stay correct if two agents do it at once, and if the selected agent has just died.
 */
export interface Leader {
  /** False only while another agent is known to lead, and in the first moments, before that is known. */
  leads(): boolean
  status(now: Millis): Leadership
  /** Gives the Lease back, so that another agent need not wait for its end. Never rejects. */
  release(): Promise<void>
}

/** No election: this agent does all the work, like every other agent. */
export const alone = (why: string): Leader => ({
  leads: () => true,
  status: () => ({ leads: true, holder: undefined, lease: undefined, why }),
  release: () => Promise.resolve()
})

/** The fields of a Lease that an election reads. */
interface LeaseFact {
  /** Empty if the holder gave it back. */
  readonly holder: string
  /** Changes with every write. It is the precondition of the agent's writes, and a change shows that the holder is alive. */
  readonly revision: string
  readonly durationMs: number
  readonly transitions: number
  readonly acquiredAt: string | undefined
}

/** The location of the Lease. */
export interface LeasePlace {
  readonly namespace: string
  readonly name: string
}

/** The longest time that another agent's Lease counts without a renewal, whatever its duration, in ms. */
const LONGEST_MS = 60_000

/** A Lease from its JSON; `undefined` if the JSON is no Lease. */
function leaseFact(json: unknown): LeaseFact | undefined {
  const { metadata, spec: specOf } = fieldsOf<V1Lease>(json)
  const revision = textOf(fieldsOf<V1ObjectMeta>(metadata).resourceVersion)
  if (revision === undefined) return undefined
  const spec = fieldsOf<V1LeaseSpec>(specOf)
  return {
    holder: textOf(spec.holderIdentity) ?? '',
    revision,
    durationMs: Math.min(LONGEST_MS, (numberOf(spec.leaseDurationSeconds) ?? 0) * 1000),
    transitions: numberOf(spec.leaseTransitions) ?? 0,
    acquiredAt: textOf(spec.acquireTime)
  }
}

const leasesPath = ({ namespace }: LeasePlace): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`

const leasePath = (place: LeasePlace): string => `${leasesPath(place)}/${encodeURIComponent(place.name)}`

/**
 * The Lease with this agent as its holder (`''`: given back), to write over `before`. Its times are for users and other programs. The
 * agent never reads them, because another clock made them.
 */
function leaseBody(
  place: LeasePlace,
  holder: string,
  before: LeaseFact | undefined,
  durationMs: number,
  now: Millis
) {
  const time = new Date(now).toISOString().replace('Z', '000Z')
  const ours = before?.holder === holder
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...place, ...(before && { resourceVersion: before.revision }) },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: Math.max(1, Math.round(durationMs / 1000)),
      acquireTime: ours ? (before.acquiredAt ?? time) : time,
      renewTime: time,
      leaseTransitions: (before?.transitions ?? 0) + (before && !ours ? 1 : 0)
    }
  }
}

export interface ElectorOptions {
  readonly place: LeasePlace
  /** Unique among all agents and among restarts of the same pod. */
  readonly identity: string
  /** One call to the API server. Any status is an answer. Rejects without an answer. */
  readonly call: (
    method: string,
    path: string,
    body: unknown,
    signal: AbortSignal
  ) => Promise<{ readonly status: number; readonly json: unknown }>
  readonly clock: Clock
  readonly log: Log
  readonly timings?: Partial<Timings>
}

export interface Timings {
  /** How long a Lease is valid without a renewal, in ms. */
  readonly durationMs: number
  /** The time between two renewals, or between two reads of another agent's Lease, in ms. */
  readonly everyMs: number
  /** How long an agent that has just started assumes that another one leads, if it cannot read the Lease, in ms. */
  readonly patienceMs: number
}

const TIMINGS: Timings = { durationMs: 10_000, everyMs: 2000, patienceMs: 3000 }

/** Limit of one call, in ms: a renewal that takes longer is useless. */
const CALL_MS = 3000

/** The last state of the Lease, and when the agent last saw it change, by the agent's clock. */
interface Observed extends LeaseFact {
  readonly changedAt: Millis
}

/**
 * Takes part in an election over a Lease, like client-go's leaderelection. The first agent that writes over the revision that it has
 * read becomes the holder, and renews the Lease. Another agent may take the Lease if it did not change for its duration, measured by
 * that agent's own clock. Runs until `release`.
 */
export function createElector(options: ElectorOptions): Leader {
  const { place, identity, clock, log } = options
  const timings = { ...TIMINGS, ...options.timings }
  const lease = `${place.namespace}/${place.name}`
  const ended = new AbortController()
  const startedAt = clock.now()
  let observed: Observed | undefined
  let hasRead = false
  let problem = ''
  let reported: string | undefined

  const isFresh = (now: Millis) => observed !== undefined && now - observed.changedAt < observed.durationMs
  /** The known holder; `''` if there is none. */
  const holder = (now: Millis) => (observed && isFresh(now) ? observed.holder : '')
  const isOthers = (now: Millis) => holder(now) !== '' && holder(now) !== identity
  const isStarting = (now: Millis) => !hasRead && now < startedAt + timings.patienceMs
  const leads = (now: Millis) => !ended.signal.aborted && !isOthers(now) && !isStarting(now)

  const observe = (fact: LeaseFact | undefined, at: Millis) => {
    hasRead = true
    problem = ''
    if (!fact) observed = undefined
    else if (fact.revision !== observed?.revision) observed = { ...fact, changedAt: at }
  }
  const call = (method: string, path: string, body?: unknown) =>
    inTime({ clock, ms: CALL_MS }, signal => options.call(method, path, body, signal))
  const read = async (): Promise<void> => {
    const { status, json } = await call('GET', leasePath(place))
    if (status !== 200 && status !== 404) throw new Error(`GET of the Lease: status ${status}`)
    observe(status === 200 ? leaseFact(json) : undefined, clock.now())
  }
  /** A 409 means that another agent was quicker; the next read shows it. */
  const write = async (name: string, durationMs: number): Promise<void> => {
    // The time before the call: other agents count from the moment that they see it, so this agent's time ends first.
    const at = clock.now()
    const body = leaseBody(place, name, observed, durationMs, at)
    const { status, json } = observed
      ? await call('PUT', leasePath(place), body)
      : await call('POST', leasesPath(place), body)
    if (status === 200 || status === 201) observe(leaseFact(json), at)
    else if (status === 409 || status === 404) await read()
    else throw new Error(`write of the Lease: status ${status}`)
  }
  const turn = async (): Promise<void> => {
    if (!hasRead || observed?.holder !== identity) await read()
    const now = clock.now()
    if (!isOthers(now) && !ended.signal.aborted) await write(identity, timings.durationMs)
  }
  const report = () => {
    const { leads: leading, holder: by, why } = status(clock.now())
    const news = `${leading} ${by ?? ''}`
    if (reported === news) return
    reported = news
    log.info({ lease, leads: leading, holder: by, why }, 'leadership')
  }
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      try {
        await turn()
      } catch (err) {
        if (problem === '') log.warn({ err, lease }, 'the Lease could not be had')
        problem = (err as Error).message
      }
      if (!ended.signal.aborted) report()
      const jitter = 1 + Math.random() * 0.1
      await clock.sleep(timings.everyMs * jitter, ended.signal).catch(() => {})
    }
  }
  const status = (now: Millis): Leadership => ({
    leads: leads(now),
    holder: holder(now) || undefined,
    lease,
    why: why(now)
  })
  const why = (now: Millis): string => {
    if (ended.signal.aborted) return 'this agent is stopping'
    if (holder(now) === identity) return 'this agent holds the Lease'
    if (isOthers(now)) return 'another agent holds the Lease'
    if (isStarting(now)) return 'the Lease has not been read yet'
    return problem === ''
      ? 'no agent holds the Lease'
      : `the Lease cannot be had, so every agent does all the work: ${problem}`
  }

  const running = run()
  const giveBack = async (): Promise<void> => {
    ended.abort(new Error('the agent is stopping'))
    // A write that is still open may make this agent the holder.
    await running
    if (observed?.holder !== identity) return
    await write('', 1000).catch((err: unknown) =>
      log.warn({ err, lease }, 'the Lease could not be given back')
    )
  }
  let released: Promise<void> | undefined
  return {
    leads: () => leads(clock.now()),
    status,
    // A second caller also waits for it, because that caller then closes the connection.
    release: () => (released ??= giveBack())
  }
}
