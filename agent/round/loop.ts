import type { Clock } from '../base/clock.ts'
import type { ProofSettings } from '../rules/proof/verdict.ts'
import type { Drain, Drains, DrainSettings } from '../rules/drain/drain.ts'
import type { Millis, PodUid } from '../rules/drain/facts.ts'
import { begin, step } from '../rules/drain/step.ts'
import type { Log } from '../base/log.ts'
import {
  createOldGateways,
  createAddressOwnership,
  listGateways,
  vouch,
  vouchForEntries
} from './ownership.ts'
import { createDesired } from './entries/desired.ts'
import { sealLookAt } from './entries/seal-decision.ts'
import { createWishes } from './entries/succession.ts'
import { remember } from './gather/gather.ts'
import { createFreshWatch, createHooks, type HeldHook, type Holds } from './hold/hooks.ts'
import { createStatuses, createNotifier, type Observer } from './gather/drain-status.ts'
import { observe, type Look } from './gather/observe.ts'
import { worldFrom, type Sources, createPlanSettings, type DrainStore } from './gather/sources.ts'
import { createReplies } from './replies.ts'
import { createSchedule, createRelister } from './schedule.ts'
import { wantedReads } from '../rules/proof/observed.ts'
import { keepsTheSame, plan, type Plan } from '../rules/plan/plan.ts'
import type { PlanSettings } from '../rules/plan/holder.ts'
import { areLive } from '../kubernetes/reflect/watch-status.ts'

export interface LoopSettings {
  readonly drain: DrainSettings
  readonly plan: PlanSettings
  readonly proof: ProofSettings
  /** Only pods of some namespaces are watched. */
  readonly someNamespacesOnly: boolean
  /** Ranges in which only pods have addresses; empty: not configured. */
  readonly podRanges: readonly string[]
  /** How often the holders are listed again during drains, in ms, as a guard against other writers. */
  readonly guardEveryMs: number
  /** How long other namespaces, and owners that are late, may delay the seal of their last node, in ms; default: no limit. */
  readonly foreignHoldMs?: number
  /** How long an entry outlives its drain, in ms; default `LINGER_MS`. */
  readonly lingerMs?: number
}

export type Loop = ReturnType<typeof createLoop>

interface LoopOptions {
  readonly sources: Sources
  readonly drains: DrainStore
  readonly settings: LoopSettings
  readonly clock: Clock
  readonly log: Log
  readonly observers: readonly Observer[]
}

const NOTHING: Plan = { changes: [], kept: [] }

/**
 * The only writer of state. Every event only triggers a round (`wake`). A round reads everything, so a lost or repeated event makes no
 * difference.
 */
export function createLoop({ sources, drains: store, settings, clock, log, observers }: LoopOptions) {
  const { cluster, inventory, writer, probe, gateways } = sources
  const world = worldFrom(sources, settings.podRanges)
  const statuses = createStatuses()
  const ownership = createAddressOwnership(settings.someNamespacesOnly, () => cluster.serverBehindMs())
  const entries = createDesired({
    sources,
    world,
    statuses,
    ownership,
    dryRun: settings.plan.dryRun,
    foreignHoldMs: settings.foreignHoldMs,
    lingerMs: settings.lingerMs,
    mayCome: createWishes(cluster, clock, () => wake())
  })
  const gatewaysAreOld = createOldGateways(() => cluster.parts())
  const planSettings = createPlanSettings(settings.plan, sources)
  const relister = createRelister(sources, settings.guardEveryMs)
  const notify = createNotifier(observers, log)
  const schedule = createSchedule({
    clock,
    log,
    round,
    ended: ms => notify(observer => observer.round?.(ms))
  })
  /** Something has changed but reports of gateways, which come much more often. */
  let isNews = true
  const wake = (): void => {
    isNews = true
    schedule.wake()
  }
  const replies = createReplies({ sources, drains: store, statuses, settings: drainSettings, notify, clock })
  const freshWatch = createFreshWatch(cluster, clock)
  const hooks = createHooks({
    cluster,
    freshWatch,
    proven: hook => replies.atOnce(hook),
    wake
  })
  let planned: Plan = NOTHING
  let lookedAt: Millis = 0
  let relistAt: Millis | undefined

  const ends = [
    gateways.onChange(() => schedule.wake()),
    ...[cluster, inventory, writer].map(part => part.onChange(wake))
  ]

  function round(now: Millis): void {
    listGateways(sources, now, log)
    const looks = observe({
      sources,
      world,
      drains: store.current(),
      statuses,
      tookOver: host => store.tookOver(host),
      hooks,
      before: planned,
      proof: settings.proof,
      now,
      since: lookedAt,
      gatewaysAreOld: gatewaysAreOld(now)
    })
    const drains = store.current()
    const next = advance(drains, looks, now)
    for (const drain of next.values()) {
      if (!drains.has(drain.uid))
        remember(drain, statuses.of(drain.uid), { sources, world, drains: next, now })
    }
    ownership.look(areLive(cluster.parts(), ['pods']), now)
    const unsure = new Set(
      [...next.values()].filter(drain => !ownership.isSure(drain, now)).map(({ uid }) => uid)
    )
    const wanted = plan(world, next, planSettings(next, unsure))
    entries.renew({ drains: next, held: hooks.uids(), now, isNews })
    isNews = false
    apply(next, wanted, looks, now)
    publish(next, looks, now)
  }

  /** Returns the drains of this round: new drains begin, known ones move on, and finished ones are dropped. */
  function advance(drains: Drains, looks: ReadonlyMap<PodUid, Look>, now: Millis): Drains {
    const next = new Map<PodUid, Drain>()
    const onOurClock = drainSettings()
    for (const [uid, { seen }] of looks) {
      const drain = drains.get(uid)
      const after =
        drain && (drain.phase !== 'undone' || seen.calls.length === 0)
          ? step(drain, seen, now, onOurClock)
          : begin(seen, now, onOurClock)
      if (after) next.set(uid, after)
      if (after?.phase !== drain?.phase) tell(uid, drain, after)
      if (drain && (!after || after.phase === 'undone')) writer.forget(uid)
      if (drain && !after) entries.ended(drain, statuses.of(uid), now)
    }
    return next
  }

  /** The configured settings, and the offset that converts the API server's times to the agent's clock. */
  function drainSettings(): DrainSettings {
    const { drain, someNamespacesOnly } = settings
    return { ...drain, someNamespacesOnly, serverBehindMs: cluster.serverBehindMs() }
  }

  function tell(uid: PodUid, before: Drain | undefined, after: Drain | undefined): void {
    notify(observer => observer.drain?.(before, after, statuses.of(uid)))
  }

  /** Gives the plan to the parts that carry it out, and waits for none of them. */
  function apply(next: Drains, wanted: Plan, looks: ReadonlyMap<PodUid, Look>, now: Millis): void {
    if (settings.proof.by === 'observed')
      probe?.want([...next].flatMap(([uid, drain]) => wantedReads(drain, looks.get(uid)?.evidence) ?? []))
    for (const kept of wanted.kept) writer.keep(kept)
    for (const change of wanted.changes) writer.submit(change)
    // The kept nodes are part of the evidence, so a plan that keeps other nodes needs another round.
    if (!keepsTheSame(planned, wanted)) wake()
    planned = wanted
    relistAt = relister.relist(next.values(), now)
  }

  /** Stores the new state, answers the hooks that can be answered, and schedules the next round. */
  function publish(next: Drains, looks: ReadonlyMap<PodUid, Look>, now: Millis): void {
    store.replace(next, entries.current(), now)
    lookedAt = now
    const times = [relistAt, ...hooks.held().map(held => answered(held, looks, now))]
    for (const drain of next.values()) {
      if (drain.phase !== 'draining' && drain.phase !== 'expired') continue
      times.push(drain.deadline, drain.since + statuses.of(drain.uid).sleepMs)
      times.push(sealLookAt(drain, now, settings.foreignHoldMs))
      if (drain.verdict.kind === 'waiting') times.push(drain.verdict.until)
    }
    statuses.keep(next, hooks.uids())
    const upcoming = times.filter(time => time !== undefined && time > now)
    if (upcoming.length > 0) schedule.set(Math.min(...(upcoming as Millis[])))
  }

  /** Answers a held hook, or returns the time of its next check. */
  function answered({ hook }: HeldHook, looks: ReadonlyMap<PodUid, Look>, now: Millis): Millis | undefined {
    const look = looks.get(hook.uid)
    const reply = look && replies.now(hook, look, now)
    if (reply?.kind === 'ack') hooks.answer(hook, reply.ack)
    return reply?.kind === 'wait' ? reply.until : undefined
  }

  return {
    /** The HTTP server's view of the loop. */
    holds: {
      hold: (request, signal) => hooks.hold(request, signal),
      canVouch: () => vouch(sources, schedule.isFailing()),
      serverBehindMs: () => cluster.serverBehindMs(),
      findByIp: ip => cluster.pods.byIp(ip),
      async freshByIp(ip, signal) {
        await freshWatch(signal)
        return cluster.pods.byIp(ip)
      },
      async find(namespace, name, signal) {
        // The agent would never see the end of a pod that no watch covers, so its drain would never end.
        if (!cluster.pods.byName(namespace, name) && cluster.isWatched(namespace)) await freshWatch(signal)
        return cluster.pods.byName(namespace, name)
      }
    } satisfies Holds,
    /** Whether the desired entries are complete. Only then may a gateway that starts rely on them. */
    vouchForEntries: () => vouchForEntries(sources, schedule.isFailing(), ownership.isLive()),
    /** Requests a round, because something has changed. */
    wake,
    drains: () => store.current(),
    status: (uid: PodUid) => statuses.of(uid),
    held: () => hooks.held(),
    lastPlan: (): Plan => planned,
    stop() {
      schedule.stop()
      for (const end of ends) end()
    }
  }
}
