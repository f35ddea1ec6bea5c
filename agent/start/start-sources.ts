import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { createGateways } from '../gateway/barrier/gateways.ts'
import type { ToldAnswers } from '../gateway/barrier/entry-table.ts'
import { createDrainStore, worldFrom, type DrainStore, type Sources } from '../round/gather/sources.ts'
import { createAdminApi, NO_ADMIN } from '../gateway/apisix/admin-api.ts'
import { reportRefusals, type Events } from '../report/tell/events.ts'
import { createBarrierClient } from '../gateway/apisix/barrier-api.ts'
import { createControlReader } from '../gateway/apisix/control-api.ts'
import { createInventory } from '../gateway/inventory/inventory.ts'
import { createListSource, NO_LISTS } from '../gateway/inventory/lists.ts'
import { createWriter } from '../gateway/write/writer.ts'
import {
  electLeader,
  adminOptions,
  barrierOptions,
  controlOptions,
  credentialSource,
  gatewaySelector
} from './wire.ts'
import type { Log } from '../base/log.ts'
import { createAsking, createStillEnding, type Asking } from '../upkeep/upkeep.ts'
import type { Metered } from '../report/metrics/round-metrics.ts'
import { startCluster, type Cluster } from '../kubernetes/facts/cluster.ts'
import { loadCredentials } from '../kubernetes/transport/credentials.ts'
import { addressRanges } from '../base/read.ts'
import { createSync, type Sync } from '../upkeep/sync.ts'
import { serviceName } from '../rules/members/members.ts'
import type { Millis } from '../rules/drain/facts.ts'

interface SourceOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly meters: Metered
  readonly cluster: Cluster
  readonly events: Events
  /** What agents tell each other by the entries. */
  readonly answers: ToldAnswers
  readonly inventoryEveryMs: number | undefined
}

interface StartedSources extends Sources {
  readonly sync: Sync | undefined
  readonly drains: DrainStore
  /** Stops the last watches, and closes idle connections. */
  readonly hangUp: () => void
}

/**
 * Starts the watches of Kubernetes.
 *
 * @throws Error if there are no usable Kubernetes credentials
 */
export function startWatches({ apisix, kubernetes }: Config, clock: Clock, log: Log): Cluster {
  return startCluster({
    credentials: loadCredentials(credentialSource(kubernetes), clock),
    namespaces: kubernetes.namespaces,
    gatewaySelector: gatewaySelector(apisix.gateways),
    clock,
    log: log.child({ part: 'watch' })
  })
}

/** Everything that does I/O for the loop, made from the configuration and started. */
export function startSources(options: SourceOptions): StartedSources {
  const { config, clock, log, meters, cluster, events, answers, inventoryEveryMs } = options
  const { apisix, sync: syncSettings } = config
  const part = (name: string) => log.child({ part: name })
  const absence = watchAbsence(clock, () => {
    log.warn('this process was away: no entry is put until the watch of pods tells again')
    cluster.assurePods()
  })
  const resumedAt = () => absence.resumedAt()
  const leader = electLeader(config, cluster, clock, part('leader'))
  const failed = reportRefusals(clock, part('apisix'))
  const admin = apisix.admin
    ? meters('admin', createAdminApi({ ...adminOptions(apisix.admin), failed }))
    : NO_ADMIN
  const mode = apisix.admin ? createListSource(admin, part('mode')) : NO_LISTS
  const inventory = createInventory({
    lists: mode,
    clock,
    log: part('inventory'),
    everyMs: inventoryEveryMs
  })
  const drains = createDrainStore(worldFrom({ cluster, inventory }, syncSettings.podRanges))
  const asking = createAsking({ cluster, clock, log: part('writer') })
  const client = apisix.barrier && createBarrierClient(barrierOptions(apisix.barrier))
  const gateways = createGateways({
    barrier: client && {
      api: { ...client, at: host => meters('barrier', client.at(host)) },
      knowledge: {
        resumedAt,
        knownAt: () => cluster.podsAssuredAt(),
        asOf: () => cluster.podsAsOf(),
        ownerSince(ip, uid) {
          const live = cluster.pods.byIp(ip).filter(pod => pod.deletionAt === undefined && !pod.hostNetwork)
          const others = live.filter(pod => pod.uid !== uid)
          // `startedAt` has whole seconds.
          return Math.max(
            ...others.map(({ startedAt = -Infinity }) => startedAt + cluster.serverBehindMs() + 1000)
          )
        }
      },
      answers,
      ttlMs: apisix.barrier?.ttlMs
    },
    read: apisix.control.enabled
      ? meters('control', { read: createControlReader(controlOptions(apisix.control, clock)) }).read
      : undefined,
    clock,
    log: part('gateway')
  })
  const { barrier, probe } = gateways
  const sync = startSync({
    config,
    cluster,
    inventory,
    leader,
    mode,
    asking,
    drains,
    events,
    log: part('sync')
  })
  const writer = createWriter({
    admin,
    inventory,
    clock,
    log: part('writer'),
    wasAwaySince: at => resumedAt() > at,
    prepare: async target => sync?.prepare(target),
    wishes: (target, found) => sync?.wishes(target, found) ?? [],
    stillEnding: createStillEnding({ cluster, asking, drains, resumedAt })
  })
  inventory.start()
  return {
    cluster,
    drains,
    inventory,
    writer,
    gateways,
    probe,
    mode,
    barrier,
    leader,
    sync,
    hangUp() {
      absence.stop()
      admin.close()
    }
  }
}

/** Stops all watches, reads and writes. Resolves when none is under way. */
export async function stopSources(sources: StartedSources): Promise<void> {
  const { cluster, inventory, writer, gateways, leader } = sources
  // Needs the connection, which is closed next.
  await leader.release()
  await Promise.all([cluster.stop(), inventory.stop(), writer.stop(), gateways.stop()])
  sources.hangUp()
}

interface SyncParts extends Pick<Sources, 'cluster' | 'inventory' | 'leader' | 'mode'> {
  readonly config: Pick<Config, 'sync' | 'drain'>
  readonly asking: Asking
  readonly log: Log
  readonly drains: DrainStore
  readonly events: Pick<Events, 'addNotSynced'>
}

/** `undefined` if no upstream may follow a Service. */
export function startSync({ config, leader, mode, drains, log, events, ...known }: SyncParts) {
  const { podRanges, allow } = config.sync
  if (allow.length === 0) return undefined
  return createSync({
    ...known,
    drains: () => drains.current(),
    isPodRange: addressRanges(podRanges),
    mayWrite: () => leader.leads() && !config.drain.dryRun && mode.current().mode === 'etcd',
    allow,
    report(service, why) {
      const facts = { service: serviceName(service) }
      if (why === undefined) return log.info(facts, 'service can be synced')
      log.error({ ...facts, why }, 'service is not synced')
      if (leader.leads()) events.addNotSynced(service, why)
    }
  })
}

/** The interval of the checks, and the gap that counts as an absence, in ms: longer than a slow turn of the event loop. */
const EVERY_MS = 250
const AWAY_MS = 1500

/**
 * Whether this process was away (SIGSTOP, a paused machine, no CPU): a gap between two ticks of the monotonic clock, as the wall clock may
 * have been set. Overdue timers fire before any input that arrived meanwhile is read. So code that acts on time must ask here first.
 *
 * @param onResume called once for each absence
 */
export function watchAbsence(clock: Clock, onResume: () => void) {
  let seenAt = clock.now()
  let resumed = -Infinity
  const look = (): void => {
    const now = clock.now()
    const gap = now - seenAt
    seenAt = now
    if (gap < AWAY_MS) return
    resumed = now
    onResume()
  }
  let cancel = () => {}
  const schedule = (): void => {
    cancel = clock.alarm(clock.now() + EVERY_MS, () => {
      look()
      schedule()
    })
  }
  schedule()
  return {
    /** When it last came back; `-Infinity`: it was never away. The first call after an absence detects the absence. */
    resumedAt(): Millis {
      look()
      return resumed
    },
    stop: () => cancel()
  }
}
