import PQueue from 'p-queue'
import type { Clock } from '../../base/clock.ts'
import { IN_UPSTREAM } from '../../rules/drain/annotations.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Log } from '../../base/log.ts'
import type { Observer } from '../../round/observer.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { arrivalOf } from '../../rules/members/arrivals.ts'
import { decideGate, type GateReason } from '../../rules/members/gate-rule.ts'
import type { Events } from './events.ts'
import { createArrivalEvidence, nothingSeen, type SeenComing } from './arrival-evidence.ts'
import type { Sources } from '../../round/gather/sources.ts'
import type { UpkeepParts } from '../../upkeep/upkeep.ts'
import { writeCondition, type Patch, type PodCondition } from './pod-condition.ts'

/** Opens the readiness gates of pods. The leader opens one once every gateway routes to the pod, or after `failOpenMs` without proof. */
interface ReadinessGate {
  readonly observer: Observer
  /** Drops the writes that it has not sent yet. */
  stop(): Promise<void>
}

interface ReadinessGateOptions {
  readonly sources: Pick<Sources, 'cluster' | 'inventory' | 'barrier' | 'survey' | 'mode' | 'leader'> &
    Pick<UpkeepParts, 'sync'>
  readonly patch: Patch
  readonly events: Pick<Events, 'addGateOpened'> | undefined
  readonly failOpenMs: number
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<Metrics, 'gates'>
}

/** Intervals in ms while a pod waits: between checks, and between requested listings. */
const EVERY_MS = { look: 100, listing: 2000 }
/** The pause before another write, in ms: after a failure, and if the watch has not shown the result. */
const AGAIN_MS = { failed: 1000, written: 5000 }
/** Concurrent writes. */
const AT_ONCE = 4

interface Waiting {
  readonly since: Millis
  readonly seen: SeenComing
  /** The earliest time of the next write; Infinity while a write is in progress. */
  writeAt: Millis
}

export function createReadinessGate(options: ReadinessGateOptions): ReadinessGate {
  const { sources, patch, events, failOpenMs, clock, log, metrics } = options
  const { cluster, inventory, survey, sync, mode, leader } = sources
  const evidence = createArrivalEvidence(sources)
  const waiting = new Map<PodUid, Waiting>()
  const stopped = new AbortController()
  const queue = new PQueue({ concurrency: AT_ONCE })
  let lookedAt = -Infinity
  let listedAt = -Infinity
  let failing = false
  let cancelAlarm = () => {}

  const isKnown = (): boolean =>
    cluster.parts().every(({ synced, state }) => synced && state === 'live') &&
    inventory.readAt() !== undefined &&
    mode.current().mode !== undefined

  const endpointOf = (pod: PodFact): 'none' | 'not-ready' | 'ready' => {
    const all = cluster.slices
      .servicesOf(pod)
      .flatMap(({ namespace, name }) => cluster.slices.of(namespace, name))
      .flatMap(({ endpoints }) => endpoints.filter(({ podUid }) => podUid === pod.uid))
    if (all.length === 0) return 'none'
    return all.some(({ ready }) => ready) ? 'ready' : 'not-ready'
  }

  const consider = (pod: PodFact, one: Waiting, known: boolean, now: Millis): void => {
    const following = sync?.following(pod) ?? { holders: [], problems: [] }
    // Every agent gathers evidence, so that a new leader continues with its own.
    const arrival = arrivalOf(evidence(pod, one.seen, now, following.holders))
    if (now < one.writeAt || !leader.leads()) return
    const decision = decideGate(
      {
        since: one.since,
        arrival,
        known,
        sharesAddress: pod.hostNetwork,
        endpoint: endpointOf(pod),
        synced: following.holders.length > 0,
        problems: following.problems
      },
      failOpenMs,
      now
    )
    if (decision.kind === 'wait') return
    one.writeAt = Infinity
    void queue.add(() => write(pod, one, decision.reason, decision.message))
  }

  const write = async (pod: PodFact, one: Waiting, reason: GateReason, message: string): Promise<void> => {
    if (stopped.signal.aborted) return
    const { namespace, name } = pod
    try {
      const condition = openGate(reason, message)
      const isWritten = await writeCondition(patch, pod, condition, clock.now(), stopped.signal)
      one.writeAt = clock.now() + AGAIN_MS.written
      if (!isWritten) return
      failing = false
      metrics.gates.inc({ result: RESULT[reason] })
      const facts = { namespace, pod: name, waitedMs: Math.round(clock.now() - one.since) }
      if (reason === 'Routed') return log.info(facts, 'readiness gate opened')
      log.warn({ ...facts, reason, why: message }, 'readiness gate opened without proof')
      events?.addGateOpened(pod, message)
    } catch (err) {
      if (stopped.signal.aborted) return
      one.writeAt = clock.now() + AGAIN_MS.failed
      metrics.gates.inc({ result: 'error' })
      if (!failing) log.warn({ err, namespace }, 'a readiness gate could not be opened')
      failing = true
    }
  }

  const look = (): void => {
    const now = clock.now()
    if (stopped.signal.aborted || now < lookedAt + EVERY_MS.look) return
    lookedAt = now
    const pods = cluster.pods.waiting()
    const uids = new Set(pods.map(({ uid }) => uid))
    for (const uid of waiting.keys()) if (!uids.has(uid)) waiting.delete(uid)
    if (pods.length === 0) return
    const known = isKnown()
    for (const pod of pods) {
      const one = waiting.get(pod.uid) ?? { since: now, seen: nothingSeen(), writeAt: now }
      waiting.set(pod.uid, one)
      consider(pod, one, known, now)
    }
    survey?.hurry()
    if (now >= listedAt + EVERY_MS.listing) {
      listedAt = now
      void inventory.refresh()
    }
    cancelAlarm()
    cancelAlarm = clock.alarm(now + EVERY_MS.look, look)
  }

  return {
    observer: { round: look },
    async stop() {
      stopped.abort(new Error('the agent is stopping'))
      cancelAlarm()
      await queue.onIdle()
    }
  }
}

const RESULT = {
  Routed: 'routed',
  NotListed: 'not-listed',
  WaitedTooLong: 'waited-too-long'
} as const satisfies Record<GateReason, string>

/** The condition, which is never False. */
export const openGate = (reason: GateReason, message: string): PodCondition => ({
  type: IN_UPSTREAM,
  status: 'True',
  reason,
  message
})
