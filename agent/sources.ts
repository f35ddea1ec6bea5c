import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import { createBarrierKeeper } from './confirm/barrier.ts'
import { createProbe } from './confirm/probe.ts'
import { createAdminApi } from './gateway/admin-api.ts'
import { createControlReader } from './gateway/control-api.ts'
import { createInventory } from './gateway/inventory.ts'
import { createWriter } from './gateway/writer.ts'
import { electLeader } from './lead/elect.ts'
import type { Log } from './log.ts'
import type { Loop } from './loop.ts'
import { expectedNodes } from './loop/expected.ts'
import type { Sources } from './loop/sources.ts'
import { createStillEnding } from './loop/still-ending.ts'
import type { Metered } from './metered.ts'
import type { Events } from './serve/events.ts'
import { startUpkeep } from './upkeep.ts'
import { startCluster, type Cluster } from './watch/cluster.ts'
import { loadCredentials } from './watch/credentials.ts'
import { adminOptions, barrierOptions, controlOptions, credentialSource, gatewaySelector } from './wire.ts'

export interface SourceOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly meters: Metered
  /** Asked for when something happens, because the loop is made from what this makes. */
  readonly loop: () => Loop
  readonly events: () => Events | undefined
}

/**
 * Everything that does I/O for the loop, made from the configuration and started.
 *
 * @throws Error where there are no usable Kubernetes credentials
 */
export function startSources({ config, clock, log, meters, loop, events }: SourceOptions): Sources {
  const { apisix, kubernetes, drain } = config
  const part = (name: string) => log.child({ part: name })
  const admin = meters.admin(createAdminApi(adminOptions(apisix.admin)))
  const inventory = createInventory({ admin, clock, log: part('inventory'), everyMs: drain.inventoryEveryMs })
  const writer = createWriter({
    admin,
    inventory,
    clock,
    log: part('writer'),
    expected: holder => [...(sync?.members(holder.key) ?? expectedNodes(cluster, holder, clock.now()))],
    wishes: (target, found) => upkeep.wishes(target, found),
    taken: one => upkeep.taken(one),
    stillEnding: createStillEnding({ cluster: () => cluster, loop, clock, log: part('writer') }),
    leader: { yields: () => leader.yields(), missed: () => leader.missed() }
  })
  const read = meters.control(createControlReader(controlOptions(apisix.control, clock)))
  const probe = createProbe({ read, clock, log: part('probe') })
  const barrier =
    apisix.barrier &&
    createBarrierKeeper({
      api: barrierOptions(apisix.barrier),
      wrap: api => meters.barrier(api),
      clock,
      log: part('barrier'),
      ttlMs: apisix.barrier.ttlMs
    })
  const cluster: Cluster = startCluster({
    credentials: loadCredentials(credentialSource(kubernetes), clock),
    namespaces: kubernetes.namespaces,
    gatewaySelector: gatewaySelector(apisix.gateways),
    services: config.sync.enabled,
    clock,
    log: part('watch'),
    onChange: () => loop().wake()
  })
  const leader = electLeader(config, cluster, clock, part('leader'))
  const { upkeep, sync } = startUpkeep({
    config,
    cluster,
    inventory,
    writer,
    leader,
    clock,
    log: part('sync'),
    loop,
    events
  })
  inventory.start()
  return {
    cluster,
    inventory,
    writer,
    probe: apisix.control.enabled ? probe : withoutReads(probe),
    barrier,
    leader,
    upkeep,
    sync
  }
}

/** The Control API is not to be read: nobody is ever asked, so no drain can reach `observed`. */
const withoutReads = (probe: Sources['probe']): Sources['probe'] => ({ ...probe, want: () => {} })

export async function stopSources(sources: Sources): Promise<void> {
  const { cluster, inventory, writer, probe, barrier, leader } = sources
  // Over the connection that ends next.
  await leader.release()
  await Promise.all([cluster.stop(), inventory.stop(), writer.stop(), probe.stop(), barrier?.stop()])
}
