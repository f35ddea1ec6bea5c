import { pino } from 'pino'

import { addressRanges } from '../base/address-ranges.ts'
import { systemClock } from '../base/clock.ts'
import { meaningOf } from '../base/errors.ts'
import type { Config } from '../config/types.ts'
import { createAdminApi } from '../gateway/apisix/admin-api.ts'
import { createBarrierClient } from '../gateway/apisix/barrier-api.ts'
import { createControlReader, type Sighting } from '../gateway/apisix/control-api.ts'
import { createInventory } from '../gateway/inventory/inventory.ts'
import { createLists } from '../gateway/inventory/lists.ts'
import { watchMode } from '../gateway/inventory/mode-watch.ts'
import type { Holder } from '../rules/plan/holder.ts'
import { expectedNodes } from '../upkeep/expected.ts'
import { answersThatL4IsCovered } from './checks/l4-cover.ts'
import { everyHidden } from '../round/gather/hidden-places.ts'
import { startCluster, type Cluster } from '../kubernetes/facts/cluster.ts'
import { loadCredentials } from '../kubernetes/transport/load-credentials.ts'
import {
  adminOptions,
  barrierOptions,
  controlOptions,
  credentialSource,
  gatewaySelector
} from '../start/wire.ts'
import type { CheckFlags } from './diagnose.ts'
import { createProgress } from './progress.ts'
import { compare, inBoth, type Row } from './compare.ts'
import { agrees, formatDiff, type DiffReport } from './diff-report.ts'

/** The pause between the two readings, in ms: longer than a write takes to reach every worker. */
const APART_MS = 2000
/** How long a watch may take to sync, in ms: SYNC_MS if it reports no problem, FAILING_MS if it reports one. */
const SYNC_MS = 30_000
const FAILING_MS = 5000

/**
 * `apisix-drain diff`: reads EndpointSlices, Admin API and every gateway twice, and prints where they differ both times.
 * Changes nothing. Returns the exit code: 0 if all agree, 1 if there is a difference or a gateway could not be read.
 *
 * @throws Error if Kubernetes or the Admin API cannot be read
 */
export async function diff(config: Config, { json, progress: wanted }: CheckFlags): Promise<number> {
  const clock = systemClock
  const log = pino({ level: 'silent' })
  const progress = createProgress(wanted)
  const { apisix, kubernetes } = config
  const cluster = startCluster({
    credentials: loadCredentials(credentialSource(kubernetes), clock),
    namespaces: kubernetes.namespaces,
    gatewaySelector: gatewaySelector(apisix.gateways),
    clock,
    log
  })
  const admin = createAdminApi(adminOptions(apisix.admin))
  const mode = watchMode({ admin, clock, log, forced: apisix.mode })
  const lists = createLists(admin, mode)
  const inventory = createInventory({ admin: lists, clock, log, everyMs: SYNC_MS, owner: apisix.owner })
  const readGateway = createControlReader(controlOptions(apisix.control, clock))
  const barrier = apisix.barrier && createBarrierClient(barrierOptions(apisix.barrier))
  const inRange = addressRanges(config.sync.podRanges)

  const readOnce = async (): Promise<{ rows: readonly Row[] } & Omit<DiffReport, 'differences'>> => {
    progress.say('reading the Admin API')
    await inventory.refresh()
    if (inventory.problem() !== '') throw new Error(inventory.problem())
    const sightings = new Map<string, Sighting>()
    const unread: { gateway: string; why: string }[] = []
    const serving = cluster.gateways().filter(gateway => gateway.ready || gateway.terminating)
    if (serving.length === 0) throw new Error('no gateway is known: check apisix.gateways')
    progress.say(`reading ${serving.length} gateways`)
    await Promise.all(
      (apisix.control.enabled ? serving : []).map(({ name, ip }) =>
        readGateway(ip).then(
          sighting => void sightings.set(name, sighting),
          (error: unknown) => void unread.push({ gateway: name, why: meaningOf(error) })
        )
      )
    )
    const rows = compare({
      holders: inventory.holders().values(),
      sightings,
      expected: holder =>
        expectedNodes(cluster, holder, clock.now(), followsAll(holder) ? Infinity : undefined),
      isFree: host => inRange(host) && cluster.pods.byIp(host).length === 0 && !cluster.slices.lists(host)
    })
    const coversL4 = await answersThatL4IsCovered(
      barrier,
      serving.map(({ ip }) => ip)
    )
    const hidden = everyHidden({ cluster, inventory }, coversL4)
    return { rows, hidden, holders: inventory.holders().size, gateways: [...sightings.keys()], unread }
  }

  try {
    progress.say('reading pods, EndpointSlices and Services')
    await synced(cluster)
    while (mode.current().mode === undefined && mode.current().problem === '') await clock.sleep(20)
    const first = await readOnce()
    if (first.rows.length > 0)
      progress.say(`${first.rows.length} differences: reading again, because they may be changes in progress`)
    await clock.sleep(first.rows.length > 0 ? APART_MS : 0)
    const { rows, ...compared } = first.rows.length > 0 ? await readOnce() : first
    const report = { differences: inBoth(first.rows, rows), ...compared }
    progress.end()
    process.stdout.write(json ? `${JSON.stringify(report)}\n` : formatDiff(report))
    return agrees(report) ? 0 : 1
  } finally {
    progress.end()
    mode.stop()
    admin.close()
    barrier?.close()
    await inventory.stop()
    await cluster.stop()
  }
}

/**
 * Whether the holder must list every ready endpoint of its Service. An ingress controller lists all of them in a holder with three
 * parts in its name. Controller 1.8 also writes subsets, in holders named `namespace_service_subset_port`.
 */
const followsAll = ({ owner, name = '' }: Holder): boolean =>
  owner !== 'unknown' && name.split('_').length === 3

/** Resolves once every watch has synced. @throws Error with the problem of a watch that takes too long */
async function synced(cluster: Pick<Cluster, 'parts'>): Promise<void> {
  const began = systemClock.now()
  for (;;) {
    const late = cluster.parts().find(part => !part.synced)
    if (!late) return
    const waited = systemClock.now() - began
    if (waited > (late.problem === '' ? SYNC_MS : FAILING_MS))
      throw new Error(`the watch of ${late.name} has not synced: ${late.problem || 'no answer'}`)
    await systemClock.sleep(20)
  }
}
