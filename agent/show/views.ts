import { hostname } from 'node:os'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'
import type { Drain, Grade, Proven } from '../drain/drain.ts'
import type { Millis, PodUid } from '../drain/facts.ts'
import type { Loop } from '../round/loop.ts'
import type { Observer } from '../round/observer.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Holder, HolderKey } from '../plan/holder.ts'
import type { Readiness } from '../base/readiness.ts'
import { buildSnapshot, drainView, leaderView, reachOf } from './build-snapshot.ts'
import { EMPTY, withAck, withPast, withProof, type History } from './history.ts'
import type { Vouch } from '../hold/holds.ts'
import type { HolderView } from '../snapshot/holder-view.ts'
import type { Snapshot, Totals } from '../snapshot/snapshot.ts'
import type { DrainView, Moments } from '../snapshot/drain-view.ts'
import { same } from '../base/same.ts'
import { createAfterAck } from './after-ack.ts'
import { createArrivals } from './arrivals-view.ts'
import { createBehind, type HolderClock } from '../behind/behind-view.ts'
import { unsealedIn, withUnsealed } from '../behind/unsealed.ts'
import { createDrift, type HolderDifference } from '../behind/drift.ts'
import { behindGauges, driftGauges, stateGauges } from './gauges.ts'
import { gatewayView } from './gateway-view.ts'
import { holdersOnSuccessors } from './succession-view.ts'
import { createHiddenView } from './hidden-view.ts'
import { everyWorkerCoversL4 } from '../proof/hidden-places.ts'
import { createHooksView } from './hooks-view.ts'
import { isRiskless, type Memory } from '../proof/memory.ts'
import { momentsOf } from '../snapshot/moments.ts'
import type { Sources } from '../proof/sources.ts'
import type { UpkeepParts } from '../upkeep/upkeep.ts'
import { latest } from '../drain/times.ts'

/** The views of the agent's state, made when a client asks, so that a round need not make them. */
interface Views {
  readonly observer: Observer
  snapshot(loop: Loop): Snapshot
  /** A snapshot without holders, watches and arrivals, which take the longest: for other agents. */
  brief(loop: Loop): Snapshot
  /** False if no round has finished for `stuckMs`: only a restart can help. */
  alive(stuckMs: number): Vouch
  /** Updates gauges before a scrape. */
  collect(loop: Loop): void
}

interface ViewsOptions {
  readonly sources: Sources & UpkeepParts
  readonly config: Config
  readonly clock: Clock
  readonly readiness: Readiness
  readonly metrics: Metrics
  readonly version: string
  /** Unique to this start of this agent. */
  readonly id: string
}

/** The usual sleep in place of a hook, and the fallback of the documented hook, in ms. */
const REPLACED_SLEEP_MS = 5000

const NO_NAMES: readonly string[] = []

const NOTHING_ELSE = {
  watches: [],
  inventory: {
    lastSuccessAt: null,
    lastAttemptAt: null,
    problem: '',
    holders: 0,
    nodes: 0,
    hooks: { routed: 0, without: [], bare: [], counts: { without: 0, bare: 0 } }
  },
  holders: [],
  hidden: [],
  arrivals: []
}

export function createViews(options: ViewsOptions): Views {
  const { sources, config, clock, readiness, metrics, version, id } = options
  const { cluster, inventory } = sources
  const startedAt = clock.now()
  let history: History = EMPTY
  const graded: Record<Grade, number> = { barrier: 0, observed: 0, accepted: 0, timer: 0 }
  const totals: { -readonly [K in Exclude<keyof Totals, 'savedMs' | 'graded'>]: number } = {
    drains: 0,
    proven: 0,
    expired: 0,
    undone: 0,
    hooks: 0,
    rounds: 0
  }
  const shown = new WeakMap<Holder, HolderView>()
  const drift = createDrift(sources)
  const hidden = createHiddenView(sources, clock, () =>
    everyWorkerCoversL4(cluster.gateways().map(({ id }) => sources.barrier?.state(id)?.told))
  )
  const hooks = createHooksView(sources, clock)
  const behind = createBehind({ sources, clock })
  const arrivals = createArrivals({ sources, isFollowed: behind.isFollowed, clock, metrics })
  const afterAck = createAfterAck(sources, metrics)
  const moreOf = (uid: PodUid, memory: Memory) => ({
    removedAt: removedFrom(memory),
    afterAck: afterAck.of(uid),
    unlisted: isRiskless(memory)
  })
  const reach = reachOf(config)
  let lastRoundAt = startedAt

  const observer: Observer = {
    drain(before, after, memory) {
      if (!before && after) totals.drains += 1
      if (isProven(after) && !isProven(before)) {
        history = withProof(history, shownOf(after, memory))
        if (after.verdict.result !== 'not-routed') graded[after.verdict.grade] += 1
      }
      if (before && !after) history = withPast(history, over(shownOf(before, memory), clock.now()))
      if (after?.phase === 'proven' || after?.phase === 'undone') totals[after.phase] += 1
      if (after?.phase === 'expired' && !isRiskless(memory)) totals.expired += 1
    },
    ack(ack, drain, memory) {
      totals.hooks += 1
      afterAck.observer.ack?.(ack, drain, memory)
      // A hook that was held for the pod's sessions replaces no sleep.
      const replacedMs = memory.keptUntil === undefined ? REPLACED_SLEEP_MS : ack.elapsedMs
      history = withAck(history, ack, clock.now(), replacedMs)
    },
    round(tookMs) {
      totals.rounds += 1
      lastRoundAt = clock.now()
      behind.observer.round?.(tookMs)
      arrivals.observer.round?.(tookMs)
      afterAck.observer.round?.(tookMs)
    }
  }

  const shownOf = (drain: Drain, memory: Memory) =>
    drainView(drain, momentsOf(drain, memory), 0, moreOf(drain.uid, memory))
  const look = (loop: Loop) =>
    drift.look({
      holders: [...inventory.holders().values()],
      drains: [...loop.drains().values()],
      memory: uid => loop.memory(uid),
      readAt: inventory.readAt() ?? 0,
      now: clock.now()
    })

  /** Returns the same object until its content changes, so that an unchanged view costs nothing. */
  const holderView = (
    holder: Holder,
    differs: HolderDifference & HolderClock & Pick<HolderView, 'onSuccessors' | 'service' | 'losers'>
  ): HolderView => {
    const known = shown.get(holder)
    if (known && same({ ...known, ...differs }, known)) return known
    const view: HolderView = {
      key: holder.key,
      name: holder.name ?? null,
      owner: holder.owner,
      form: holder.discovery ? 'discovery' : holder.form,
      revision: holder.revision,
      nodes: holder.nodes.map(node => node.key),
      ...differs
    }
    shown.set(holder, view)
    return view
  }

  /** The parts of a snapshot that agents share. */
  const common = (loop: Loop) => {
    const now = clock.now()
    const drains = [...loop.drains().values()]
    const held = new Map<PodUid, number>()
    for (const { hook } of loop.held()) held.set(hook.uid, (held.get(hook.uid) ?? 0) + 1)
    return {
      now,
      agent: {
        id,
        name: hostname(),
        version,
        startedAt,
        dryRun: config.drain.dryRun,
        minimumGrade: config.drain.minimumGrade,
        sleepMs: REPLACED_SLEEP_MS,
        docsUrl: config.serve.dashboard?.docsUrl ?? null,
        reach,
        vouch: loop.holds.canVouch(),
        leader: leaderView(sources.leader.status(now)),
        apisix: sources.mode.current(),
        missingParts: readiness.missing()
      },
      gateways: cluster.gateways().map(gateway => gatewayView(gateway, sources, config.apisix.control)),
      drains,
      moments: new Map<PodUid, Moments>(
        drains.map(drain => [drain.uid, momentsOf(drain, loop.memory(drain.uid))])
      ),
      hooks: held,
      more: (uid: PodUid) => moreOf(uid, loop.memory(uid)),
      history,
      totals: { ...totals, graded: { ...graded }, savedMs: history.savedMs }
    }
  }

  return {
    observer,
    brief: loop => buildSnapshot({ ...common(loop), ...NOTHING_ELSE }),
    snapshot(loop) {
      const holders = [...inventory.holders().values()]
      const differs = look(loop)
      const known = common(loop)
      const unsealed = unsealedIn(known.drains, uid => loop.memory(uid), clock.now())
      const succeeded = holdersOnSuccessors(known.drains, uid => loop.memory(uid), inventory)
      return buildSnapshot({
        ...known,
        watches: cluster.parts().map(({ name, state, lastEventAt, objects, problem }) => ({
          kind: name,
          state,
          lastEventAt: lastEventAt ?? null,
          objects,
          problem
        })),
        inventory: {
          lastSuccessAt: inventory.readAt() ?? null,
          lastAttemptAt: inventory.readAt() ?? null,
          problem: inventory.problem(),
          holders: holders.length,
          nodes: holders.reduce((sum, holder) => sum + holder.nodes.length, 0),
          hooks: hooks()
        },
        holders: holders.map(holder =>
          holderView(holder, {
            ...differs(holder.key),
            ...withUnsealed(behind.of(holder.key), unsealed.get(holder.key)),
            service: behind.serviceOf(holder.key),
            losers: sources.sync?.losers(holder.key) ?? NO_NAMES,
            onSuccessors: succeeded.get(holder.key) ?? null
          })
        ),
        hidden: hidden(),
        arrivals: arrivals.views()
      })
    },
    alive(stuckMs) {
      const silent = clock.now() - lastRoundAt
      return silent < stuckMs
        ? { ok: true }
        : { ok: false, why: `no round for ${Math.round(silent / 1000)} s` }
    },
    collect(loop) {
      look(loop)
      const { without, bare } = hooks().counts
      metrics.lacking.set({ lacks: 'hook' }, without)
      metrics.lacking.set({ lacks: 'fallback' }, bare)
      driftGauges(metrics, drift.counts(clock.now()))
      const unsealed = unsealedIn([...loop.drains().values()], uid => loop.memory(uid), clock.now())
      behindGauges(metrics, {
        clocks: behind.all(),
        unsealed: [...unsealed.values()].flat(),
        gateways: cluster.gateways(),
        now: clock.now()
      })
      stateGauges(metrics, { sources, control: config.apisix.control, loop, now: clock.now() })
    }
  }
}

/** A drain whose pod is gone. If no holder lists the pod any more, the round that sees it gone also forgets its drain. */
const over = (drain: DrainView, now: number): DrainView =>
  drain.phase === 'undone' || drain.moments.goneAt !== null
    ? drain
    : { ...drain, phase: 'gone', moments: { ...drain.moments, goneAt: now } }

/** A pod can disappear in the same round that proves its drain. */
const isProven = (
  drain: Drain | undefined
): drain is Extract<Drain, { readonly verdict: unknown }> & { readonly verdict: Proven } =>
  drain !== undefined && drain.phase !== 'undone' && drain.verdict.kind === 'proven'

/** When the last place of a holder dropped the pod. */
const removedFrom =
  ({ places }: Memory) =>
  (key: HolderKey): Millis | undefined =>
    latest([...places.values()].filter(({ holder }) => holder.key === key).map(place => place.removedAt))
