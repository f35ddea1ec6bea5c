import { addressRanges } from '../base/address-ranges.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import type { Log } from '../base/log.ts'
import type { CurrentDrains } from '../round/drain-store.ts'
import type { Asking } from '../upkeep/asking.ts'
import { createGhosts, type Ghosts } from '../upkeep/ghosts.ts'
import type { Sources } from '../round/gather/sources.ts'
import { createSync, type Sync } from '../upkeep/sync.ts'
import type { UpkeepParts } from '../upkeep/upkeep.ts'
import { serviceName } from '../rules/members/claim.ts'
import type { Events } from '../report/tell/events.ts'

interface StartOptions extends Pick<Sources, 'cluster' | 'inventory' | 'leader' | 'mode'> {
  readonly config: Pick<Config, 'sync' | 'drain' | 'ghosts' | 'kubernetes'>
  readonly asking: Asking
  readonly clock: Clock
  readonly log: Log
  readonly drains: CurrentDrains
  readonly events: Pick<Events, 'addNotSynced'> | undefined
}

/** The parts that look at holders apart from drains. Built from the configuration and the other parts. */
export const startUpkeep = (parts: StartOptions): UpkeepParts => ({
  sync: parts.config.sync.enabled ? syncOf(parts) : undefined,
  ghosts: ghostsOf(parts)
})

function ghostsOf({ config, cluster, inventory, log, drains }: StartOptions): Ghosts {
  const { podRanges } = config.sync
  return createGhosts({
    cluster,
    inventory,
    drains: () => drains.current(),
    isPodRange: addressRanges(podRanges),
    hasRanges: podRanges.length > 0,
    everywhere: config.kubernetes.namespaces.length === 0,
    afterMs: config.ghosts.afterMs,
    log
  })
}

function syncOf({
  config,
  cluster,
  inventory,
  leader,
  mode,
  asking,
  log,
  drains,
  events
}: StartOptions): Sync {
  return createSync({
    cluster,
    inventory,
    drains: () => drains.current(),
    asking,
    mayWrite: () => leader.leads() && !config.drain.dryRun && mode.current().mode === 'etcd',
    allow: config.sync.allow,
    isPodRange: addressRanges(config.sync.podRanges),
    told(service, why) {
      const facts = { service: serviceName(service) }
      if (why === undefined) return log.info(facts, 'service can be synced')
      log.error({ ...facts, why }, 'service is not synced')
      if (leader.leads()) events?.addNotSynced(service, why)
    }
  })
}
