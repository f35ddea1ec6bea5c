import { BlockList, isIPv6 } from 'node:net'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Log } from './log.ts'
import type { Loop } from './loop.ts'
import { createRestore } from './loop/restore.ts'
import type { Sources } from './loop/sources.ts'
import { createSync, type Sync } from './loop/sync.ts'
import { createUpkeep, type Upkeep } from './loop/upkeep.ts'
import { isEnding } from './plan/match.ts'
import { serviceName } from './plan/claim.ts'
import type { Events } from './serve/events.ts'

export interface UpkeepParts extends Pick<Sources, 'cluster' | 'inventory' | 'writer' | 'leader'> {
  readonly config: Pick<Config, 'sync' | 'drain'>
  readonly clock: Clock
  readonly log: Log
  readonly loop: () => Pick<Loop, 'drains'>
  readonly events: () => Pick<Events, 'addNotSynced'> | undefined
}

/** What keeps holders as they should be beside removals, joined from the configuration and the other parts. */
export function startUpkeep(parts: UpkeepParts): {
  readonly upkeep: Upkeep
  readonly sync: Sync | undefined
} {
  const { config, cluster, clock, loop } = parts
  const drains = () => loop().drains()
  const restore = createRestore((uid, host) => {
    const pod = cluster.pods.get(uid)
    return (
      pod !== undefined &&
      pod.deletionAt === undefined &&
      pod.ips.includes(host) &&
      !isEnding(drains().get(uid))
    )
  })
  const sync = config.sync.enabled ? syncOf(parts) : undefined
  const upkeep = createUpkeep({ restore, sync, writer: () => parts.writer, now: () => clock.now() })
  return { upkeep, sync }
}

function syncOf({ config, cluster, inventory, leader, clock, log, loop, events }: UpkeepParts): Sync {
  const ranges = new BlockList()
  for (const range of config.sync.podRanges) {
    const [network = '', prefix] = range.split('/')
    ranges.addSubnet(network, Number(prefix), isIPv6(network) ? 'ipv6' : 'ipv4')
  }
  return createSync({
    cluster,
    inventory,
    drains: () => loop().drains(),
    mayWrite: () => leader.leads() && !config.drain.dryRun,
    isPodRange: host => ranges.check(host, isIPv6(host) ? 'ipv6' : 'ipv4'),
    now: () => clock.now(),
    told(service, why) {
      const facts = { service: serviceName(service) }
      if (why === undefined) return log.info(facts, 'service can be synced')
      log.error({ ...facts, why }, 'service is not synced')
      if (leader.leads()) events()?.addNotSynced(service, why)
    }
  })
}
