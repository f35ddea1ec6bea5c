import { addressRanges } from '../base/address-ranges.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'
import type { Log } from '../base/log.ts'
import type { CurrentDrains } from '../round/drain-store.ts'
import type { Asking } from '../upkeep/asking.ts'
import { createAmends } from '../upkeep/amends.ts'
import { createGhosts, type Ghosts } from '../upkeep/ghosts.ts'
import { createRestore } from '../upkeep/restore.ts'
import type { Sources } from '../round/gather/sources.ts'
import { createSync, type Sync } from '../upkeep/sync/sync.ts'
import { createUpkeep, type UpkeepParts } from '../upkeep/upkeep.ts'
import { addressOf } from '../gateway/apisix/nodes.ts'
import { isOfRole } from '../rules/drain/workload.ts'
import type { NodeKey, PodFact } from '../rules/drain/facts.ts'
import type { HolderNode } from '../rules/plan/holder.ts'
import { isEnding } from '../rules/plan/match.ts'
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

/** The parts that keep holders as they should be, apart from removals. Built from the configuration and the other parts. */
export function startUpkeep(parts: StartOptions): UpkeepParts {
  const { config, cluster, clock, drains } = parts
  const stays = ({ uid, deletionAt }: PodFact) =>
    deletionAt === undefined && !isEnding(drains.current().get(uid))
  const isLeaving = (node: NodeKey) => {
    const { host } = addressOf(node)
    const pods = cluster.pods.byIp(host)
    return pods.length > 0 ? !pods.some(stays) : cluster.pods.endedAt(host) !== undefined
  }
  const isBack = (pod: PodFact, { host, port }: HolderNode) =>
    cluster.pods
      .byIp(host)
      .some(
        next =>
          next.uid !== pod.uid &&
          isOfRole(pod, next) &&
          next.ready &&
          stays(next) &&
          (!next.hostNetwork ||
            port === undefined ||
            [...next.containerPorts, ...cluster.slices.portsOf(next)].includes(port))
      )
  const restore = createRestore({
    staysAt(uid, host) {
      const pod = cluster.pods.get(uid)
      return pod !== undefined && pod.ips.includes(host) && stays(pod)
    },
    isBack,
    isLeaving,
    holders: () => parts.inventory.holders()
  })
  const sync = config.sync.enabled ? syncOf(parts) : undefined
  const ghosts = ghostsOf(parts)
  const podsAt = (node: NodeKey) =>
    cluster.pods
      .byIp(addressOf(node).host)
      .map(({ uid }) => uid)
      .toSorted()
      .join(' ')
  const amends = createAmends({ podsAt, isLeaving, now: () => clock.now() })
  const upkeep = createUpkeep({
    restore,
    amends,
    sync,
    ghosts,
    now: () => clock.now()
  })
  return { upkeep, sync }
}

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
