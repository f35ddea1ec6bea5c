import { readOptions } from '../drain/annotations.ts'
import { countOf, type Drain, type GatewayReport, type Idle, type Verdict } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import { earliest, latest } from '../drain/times.ts'
import type { Evidence, ProofSettings } from './evidence.ts'
import { assess } from './gateway-proof.ts'
import { LOAD_IT, allOf, gatewayObstacles, longLivedOf, verdictOf } from './verdict.ts'

/**
 * The verdict on a drain by the barriers: every gateway has sealed the pod, and then counted 0 ordinary requests in flight. What a list in
 * the Admin API says about it does not count: after a seal by the workers' words, not even its last node.
 */
export function prove(
  evidence: Evidence,
  drain: Pick<Drain, 'since' | 'pod'>,
  now: Millis,
  settings: Pick<ProofSettings, 'longLivedMs'>
): Verdict {
  const { longLivedMs = settings.longLivedMs } = readOptions(drain.pod.annotations)
  const assessed = evidence.gateways.map(one => assess(one, drain.since, now, drain.since + longLivedMs))
  const gateways = assessed.map(({ report }) => report)
  const idle = allOf(gateways, isIdle)
  const isSilent = evidence.gateways.some(({ silent }) => silent)
  const nothing = longLivedOf(evidence) ? 'no other request' : 'nothing'
  return verdictOf(evidence, drain, now, {
    gateways,
    proof: idle && { grade: 'barrier', gateways: idle },
    reached: `every gateway (${gateways.length}) has sealed it and ${nothing} is in flight${evidence.sealForced ? FORCED : ''}`,
    places: placesOf(evidence),
    barred: assessed.length > 0 && assessed.every(({ sealed }) => sealed),
    obstacles: [
      ...evidence.holders
        .filter(({ state, letGo }) => state === 'kept-last' || letGo)
        .map(({ key, why }) => `${key}: ${why}`),
      ...(idle ? [] : gatewayObstacles(gateways))
    ],
    vain: isSilent ? 'soon' : undefined,
    change: isSilent ? LOAD_IT : undefined,
    until: earliest(assessed.map(({ waitsUntil }) => waitsUntil))
  })
}

const isIdle = (report: GatewayReport): report is Idle => report.grade === 'barrier'

/** The answer must state what happens to the last requests. */
const FORCED =
  '; no other pod could take over in time, so a gateway that knew no other node answers 503 since the seal'

/** By the words: some places may have dropped the pod since. A place that a worker cannot see counts. `undefined` without all words. */
function placesOf({ gateways, holders, tookOver }: Evidence): number | undefined {
  const told = latest(
    gateways.map(({ barrier: { word } = {} }) => (word?.complete ? word.places + word.hidden : undefined))
  )
  return told === undefined ? undefined : Math.max(told, holders.length, Number(tookOver))
}

/**
 * Whether nothing that the agent knows leads to the pod. An inventory that is newer than the pod's end does not list the pod, no hidden
 * place may lead to it, and no gateway has shown a sign of it. This is no proof, because a gateway that did not answer may have an older
 * configuration.
 */
export const isUnlisted = ({ holders, absentSince, hiddenBy, gateways }: Evidence): boolean =>
  holders.length === 0 &&
  absentSince !== undefined &&
  hiddenBy.length === 0 &&
  gateways.every(
    ({ observation, barrier }) =>
      !observation?.stillListed &&
      (barrier === undefined ||
        (barrier.inflight.requests === 0 &&
          countOf(barrier.inflight.long) === 0 &&
          (barrier.word?.places ?? 0) === 0))
  )
