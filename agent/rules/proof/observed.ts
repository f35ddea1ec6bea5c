import type { Drain, GatewayReport, Verdict, Without } from '../drain/drain.ts'
import { formatDuration } from '../drain/annotations.ts'
import { type Millis, type NodeKey, type PodUid, type GatewayFact, latest } from '../drain/facts.ts'
import { LOAD_IT, allOf, gatewayObstacles, verdictOf, type Evidence, type ProofSettings } from './verdict.ts'

/** How many consecutive clean reads each gateway must give: each on a new connection, so perhaps of another worker. */
const READS = 5

/** A drain that waits for reads, and the nodes that the reads look for. */
export interface Wanted {
  readonly uid: PodUid
  readonly nodes: readonly NodeKey[]
  /** Reads that began before this time do not count. */
  readonly since: Millis
}

/**
 * The verdict on a drain without the plugin. Every list has dropped the pod, every gateway has been read without it, and since then a sleep
 * has passed: `drain.settle`, and at the answer the hook's own. This is a sample, so it counts only where every node of every list is a
 * literal address, and never for a last node.
 */
export function proveByReads(
  evidence: Evidence,
  drain: Pick<Drain, 'since' | 'witnesses'>,
  now: Millis,
  { settleMs }: Pick<ProofSettings, 'settleMs'>
): Verdict {
  const { holders, notLiteral, inventoryProblem } = evidence
  const gateways = evidence.gateways.map(reportOf)
  const seen = allOf(gateways, isWithout)
  const outAt = droppedAt(evidence, drain)
  const removedAt = seen && outAt !== undefined ? Math.max(outAt, ...seen.map(({ at }) => at)) : undefined
  const settledAt = removedAt === undefined ? undefined : removedAt + settleMs
  const vain = vainFor(evidence, drain)
  const isProven = vain !== 'now' && settledAt !== undefined && settledAt <= now
  return verdictOf(evidence, drain, now, {
    gateways,
    proof:
      seen && isProven ? { grade: 'observed', gateways: seen, removedAt: removedAt as Millis } : undefined,
    reached: `every gateway (${gateways.length}) was seen without it for ${formatDuration(settleMs)}, which is a sample`,
    places: holders.length,
    barred: false,
    obstacles: [
      ...(notLiteral ? [`${notLiteral.holder}: ${notLiteral.why}`] : []),
      ...holders.flatMap(({ key, state, why, observable }) =>
        state !== 'removed'
          ? [`${key}: ${why || state}`]
          : observable
            ? []
            : [`${key}: the Control API does not show it`]
      ),
      ...(inventoryProblem === '' ? [] : [inventoryProblem]),
      ...gatewayObstacles(gateways)
    ],
    vain,
    change: notLiteral?.change ?? LOAD_IT,
    until: settledAt
  })
}

/** The reads that a drain needs: from when every list has dropped the pod. `undefined`: none yet, or none any more. */
export function wantedReads(drain: Drain, evidence: Evidence | undefined): Wanted | undefined {
  const outAt = drain.phase === 'draining' && evidence ? droppedAt(evidence, drain) : undefined
  return outAt === undefined || !evidence
    ? undefined
    : { uid: drain.uid, nodes: evidence.nodes, since: Math.max(drain.since, outAt) }
}

/** When the last list was first seen to lack the pod; `undefined` while one lists it, or is too old to show that. */
const droppedAt = ({ holders, isAbsent }: Evidence, { since }: Pick<Drain, 'since'>): Millis | undefined =>
  holders.length === 0 && isAbsent ? since : latest(holders.map(({ removedAt }) => removedAt))

const isWithout = (report: GatewayReport): report is Without => report.grade === 'observed'

/** What reads of one gateway show. A gateway that is not Ready may have no configuration yet, so its reads do not count. */
function reportOf({ gateway, observation, doubt }: Evidence['gateways'][number]): GatewayReport {
  const { name, ready, terminating, vanishedAt } = gateway
  const starts = ready || terminating ? '' : 'not Ready, so its Control API does not count'
  const why = doubt || starts || missingIn(observation)
  if (why === '' && observation?.firstCleanAt !== undefined)
    return { name, grade: 'observed', at: observation.firstCleanAt, why }
  const gone = vanishedAt === undefined ? '' : 'its pod is gone, and was not seen to end; '
  return { name, grade: undefined, at: undefined, why: gone + why }
}

function missingIn(observation: Evidence['gateways'][number]['observation']): string {
  if (observation === undefined) return 'its Control API was not read'
  const { problem, stillListed, cleanReads } = observation
  if (problem !== '') return problem
  if (stillListed) return 'it still lists the node'
  return cleanReads < READS ? `${cleanReads} of ${READS} clean reads` : ''
}

/**
 * When to give up. Nobody takes out a node that stays for its next pod, or whose pod may stay itself: it would not be added again. What is not
 * there after a moment (a gateway that answers, a write that works) may come too late for this hook.
 */
function vainFor(
  { holders, gateways, notLiteral, inventoryProblem }: Evidence,
  { witnesses: { deletion, deleted } }: Pick<Drain, 'witnesses'>
): 'now' | 'soon' | undefined {
  if (notLiteral || holders.some(one => one.stays || !one.observable || one.state === 'kept-last'))
    return 'now'
  const isListed = holders.some(({ state }) => state !== 'removed')
  const mayStay = isListed && deletion === undefined && deleted === undefined
  // A gateway that has answered for this drain is waited for.
  const isBlind = gateways.some(
    ({ doubt, observation, gateway: { ready, terminating } }) =>
      doubt !== '' ||
      !(ready || terminating) ||
      (observation?.problem && !observation.stillListed && observation.cleanReads === 0)
  )
  const isStuck = inventoryProblem !== '' || holders.some(({ state }) => state === 'failed')
  return mayStay || isBlind || isStuck ? 'soon' : undefined
}

/** The last results from one interface of a gateway: its barrier, or its Control API. */
export interface Heard {
  readonly lastSuccessAt: Millis | undefined
  readonly lastAttemptAt: Millis | undefined
  /** The last attempt was refused: nothing listened at the address. */
  readonly refused: boolean
}

/**
 * How long a gateway that is not Ready and does not answer is assumed to serve, in ms. No request through it is expected to last longer:
 * APISIX's own time-outs are 60 s, and a slow upload takes more. An entry outlives its drain by the same time.
 */
export const REQUESTS_LAST_MS = 120_000

/**
 * When a gateway that is Terminating, unready or gone stops serving: a time in the past, or the time of the next check. It has ended if no
 * container of it runs and its barrier refuses connections. If its object is gone, the first of its interfaces that ever answered has to
 * refuse: a refusal by another one (no plugin, a closed port) proves nothing. A gateway that only becomes silent may be frozen or cut off,
 * so it counts until its requests are over.
 *
 * @param interfaces the most conclusive first
 */
export function gatewayEndsAt(
  { vanishedAt, unreadyAt = Infinity, stopped }: Pick<GatewayFact, 'vanishedAt' | 'unreadyAt' | 'stopped'>,
  interfaces: readonly Heard[]
): Millis {
  const since = vanishedAt ?? unreadyAt
  const heard = interfaces.filter(({ lastSuccessAt }) => lastSuccessAt !== undefined)
  const [first] = stopped ? interfaces : vanishedAt === undefined ? [] : heard
  if (first?.refused && (first.lastAttemptAt ?? -Infinity) >= since) return since
  // A gateway that was silent before, and is cut off from the agent only, may serve until now.
  const silentSince = vanishedAt !== undefined && heard.length > 0 ? -Infinity : since
  return Math.max(silentSince, ...heard.map(one => one.lastSuccessAt ?? -Infinity)) + REQUESTS_LAST_MS
}
