import { hostname } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/config.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Loop } from '../../round/loop.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { SNAPSHOT_VERSION, type Snapshot, type HooksView } from '../snapshot/snapshot.ts'
import { drainView, reachOf, gatewayView, holdersOnSuccessors } from './build-snapshot.ts'
import type { MissingPart, Vouch } from '../../round/hold/hooks.ts'
import { createAfterAck, behindGauges, stateGauges } from './gauges.ts'
import { createArrivals } from './arrivals-view.ts'
import { createBehind, createGhosts } from '../behind/behind-view.ts'
import { unsealedIn, withUnsealed } from '../behind/differences.ts'
import { UNSAFE } from '../metrics/metric-registry.ts'
import { seldom } from '../metrics/round-metrics.ts'
import { createRecord, type Answers } from './record.ts'
import type { Observer, Status } from '../../round/gather/drain-status.ts'
import type { Sources } from '../../round/gather/sources.ts'
import type { Sync } from '../../upkeep/sync.ts'
import { saysThatItEnds } from '../../rules/drain/eligible.ts'

interface ViewsOptions {
  readonly sources: Sources & { readonly sync: Sync | undefined }
  readonly config: Config
  readonly clock: Clock
  readonly missing: () => readonly MissingPart[]
  readonly metrics: Metrics
  /** What agents tell each other; nothing without the barrier. */
  readonly answers?: Answers
  readonly version: string
}

/** The usual sleep in place of a hook, and the fallback of the documented hook, in ms. */
const REPLACED_SLEEP_MS = 5000

/** The views of the agent's state, made when a client asks, so that a round need not make them. */
export function createViews(options: ViewsOptions) {
  const { sources, config, clock, missing, metrics, answers, version } = options
  const { cluster, inventory } = sources
  const startedAt = clock.now()
  const hooks = createHooksView(sources, clock)
  const behind = createBehind({ sources, clock })
  const ghosts = createGhosts({ sources, config, clock })
  const arrivals = createArrivals({ sources, lackedBy: behind.lackedBy, clock, metrics })
  const afterAck = createAfterAck(sources, metrics)
  const reach = reachOf(config)
  const shownOf = (drain: Drain, status: Status, hooks?: number) =>
    drainView(drain, status, {
      hooks,
      ackAt: record.answeredAt(drain.uid),
      afterAck: afterAck.of(drain.uid)
    })
  const name = hostname()
  const record = createRecord({ clock, sleepMs: REPLACED_SLEEP_MS, name, shown: shownOf })
  const telling: Observer = {
    ack: ack => answers?.note(ack, clock.now()),
    round: () => answers?.take().forEach(answer => record.heard(answer))
  }

  return {
    observers: [telling, ...[record, afterAck, behind, ghosts, arrivals].map(part => part.observer)],
    snapshot(loop: Loop): Snapshot {
      const now = clock.now()
      const drains = [...loop.drains().values()]
      const held = new Map<PodUid, number>()
      for (const { hook } of loop.held()) held.set(hook.uid, (held.get(hook.uid) ?? 0) + 1)
      const status = (uid: PodUid) => loop.status(uid)
      const unsealed = unsealedIn(drains, status)
      const succeeded = holdersOnSuccessors(drains, status, inventory)
      const { past, acks, lags } = record.history()
      return {
        version: SNAPSHOT_VERSION,
        at: now,
        agent: {
          name,
          version,
          startedAt,
          dryRun: config.drain.dryRun,
          sleepMs: REPLACED_SLEEP_MS,
          reach,
          vouch: loop.holds.canVouch(),
          leader: sources.leader.status(now),
          apisix: sources.mode.current(),
          missingParts: missing()
        },
        gateways: cluster.gateways().map(gateway => gatewayView(gateway, sources, config.apisix.control)),
        drains: drains.map(drain => shownOf(drain, status(drain.uid), held.get(drain.uid))),
        past,
        acks,
        lags,
        totals: record.totals(),
        watches: cluster.parts().map(({ name, state, lastEventAt, objects, problem }) => ({
          kind: name,
          state,
          lastEventAt: lastEventAt ?? null,
          objects,
          problem
        })),
        inventory: {
          lastSuccessAt: inventory.readAt() ?? null,
          problem: inventory.problem(),
          hooks: hooks()
        },
        holders: [...inventory.holders().values()].map(holder => {
          const { key, name, owner, discovery, form, revision, nodes } = holder
          return {
            key,
            name: name ?? null,
            owner,
            form: discovery ? 'discovery' : form,
            revision,
            nodes: nodes.map(node => node.key),
            ghosts: ghosts.of(holder),
            ...withUnsealed(behind.of(key), unsealed.get(key)),
            service: behind.serviceOf(key),
            onSuccessors: succeeded.get(key) ?? null
          }
        }),
        arrivals: arrivals.views()
      }
    },
    /** False if no round has finished for `stuckMs`: only a restart can help. */
    alive(stuckMs: number): Vouch {
      const silent = clock.now() - record.lastRoundAt()
      return silent < stuckMs
        ? { ok: true }
        : { ok: false, why: `no round for ${Math.round(silent / 1000)} s` }
    },
    /** Updates gauges before a scrape. */
    collect(loop: Loop) {
      const all = [...inventory.holders().values()].flatMap(ghosts.of)
      const since = all.reduce((least, ghost) => Math.min(least, ghost.since), clock.now())
      metrics.ghostAge.set((clock.now() - since) / 1000)
      const unsealed = unsealedIn([...loop.drains().values()], uid => loop.status(uid))
      behindGauges(metrics, {
        clocks: behind.all(),
        unsealed: [...unsealed.values()].flat(),
        gateways: cluster.gateways(),
        now: clock.now()
      })
      const { counts } = hooks()
      for (const why of UNSAFE) metrics.workloadsWithoutHook.set({ why }, counts[why])
      stateGauges(metrics, { sources, control: config.apisix.control, loop, now: clock.now() })
    }
  }
}

/** The pause after a count, as a multiple of its duration: pods and holders change all the time. */
const REST = 100
/** The most names in each list; the counts include all. */
const NAMED = 20

interface HooksViewParts {
  readonly cluster: { readonly pods: { values(): Iterable<PodFact> } }
  readonly inventory: Pick<Sources['inventory'], 'byHost' | 'readAt'>
}

/**
 * Which routed workloads have no hook, a hook without a fallback, or a container without a hook. A pod counts as routed if it is Ready and a holder lists its own
 * address. So pods on their host's network, which share its address, are not counted, and neither are nodes that APISIX discovers.
 */
export function createHooksView(
  { cluster, inventory }: HooksViewParts,
  clock: Pick<Clock, 'now'>
): () => HooksView {
  const counted = seldom(clock, 1000, REST, () => {
    const routed: PodFact[] = []
    for (const pod of cluster.pods.values()) {
      const isSteady = pod.ready && !pod.hostNetwork && !saysThatItEnds(pod)
      if (isSteady && pod.ips.some(ip => inventory.byHost(ip).length > 0)) routed.push(pod)
    }
    return viewOf(routed)
  })
  return () => (inventory.readAt() === undefined ? viewOf([]) : counted())
}

function viewOf(pods: readonly PodFact[]): HooksView {
  const without = new Map<string, number>()
  const bare = new Map<string, number>()
  const early = new Map<string, number>()
  const routed = new Set<string>()
  for (const pod of pods) {
    const name = `${pod.namespace}/${workloadOf(pod)}`
    routed.add(name)
    if (pod.hook === 'safe') continue
    const counts = pod.hook === 'bare' ? bare : pod.hook === 'part' ? early : without
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const list = (counts: ReadonlyMap<string, number>) =>
    [...counts]
      .map(([name, pods]) => ({ name, pods }))
      .sort((a, b) => b.pods - a.pods || (a.name < b.name ? -1 : 1))
      .slice(0, NAMED)
  return {
    routed: routed.size,
    without: list(without),
    bare: list(bare),
    early: list(early),
    counts: { without: without.size, bare: bare.size, early: early.size }
  }
}

/** A ReplicaSet's name is its Deployment's and a hash. */
const workloadOf = ({ owner, name }: PodFact): string =>
  owner === undefined ? `Pod/${name}` : owner.replace(/^ReplicaSet\/(.+)-[a-z0-9]+$/, 'Deployment/$1')
