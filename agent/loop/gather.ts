import type { BarrierReading, Evidence } from '../confirm/evidence.ts'
import type { Drain, Drains, HolderReport } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import { observable } from '../gateway/control-api.ts'
import type { Kept, Plan } from '../plan/change.ts'
import { endingNodes, nodesOf, type Match } from '../plan/match.ts'
import type { World } from '../plan/world.ts'
import type { Looks, Memory, Place } from './memory.ts'
import type { Sources } from './sources.ts'

const KEPT_STATE = {
  'last-node': { state: 'kept-last', why: 'the last node of this holder: kept until another one is listed' },
  discovery: { state: 'foreign', why: 'APISIX finds these nodes by discovery: nothing to edit' },
  'dry-run': { state: 'dry-run', why: 'dry run: nothing is written' },
  deferred: { state: 'listed', why: 'left to its owner for now' },
  paused: { state: 'listed', why: 'writing is paused' }
} as const satisfies Record<Kept['why'], Pick<HolderReport, 'state' | 'why'>>

/** Everything known about one drain, from the caches of the parts that do I/O. Brings the drain's memory up to date. */
export function gather(
  drain: Drain,
  memory: Memory,
  world: World,
  drains: Drains,
  sources: Sources,
  before: Plan,
  now: Millis
): Evidence {
  const { cluster, inventory, probe, barrier } = sources
  const ports = world.portsOf(drain.uid)
  if (ports.length > 0) memory.ports = ports
  rememberPlaces(endingNodes(world, drains, drain), drain, memory, sources, now)

  const inventoryAt = inventory.readAt()
  const unlisted = memory.places.size === 0 && inventoryAt !== undefined && inventoryAt >= drain.since
  memory.absentSince = unlisted ? (memory.absentSince ?? now) : undefined

  const gateways = cluster.gateways().map(gateway => {
    const observation = probe.observation(drain.uid, gateway.id)
    const reading = barrier?.reading(drain.uid, gateway.id)
    const look = memory.looks.get(gateway.id)
    if (reading && reading !== look?.current) memory.looks.set(gateway.id, lookAgain(look, reading, now))
    return { gateway, observation, barrier: reading }
  })
  return {
    nodes: nodesOf(drain.pod, memory.ports),
    inventoryAt,
    absentSince: memory.absentSince,
    inventoryProblem: inventory.problem(),
    holders: [...memory.places.values()].map(place => report(drain, place, sources, before)),
    gateways,
    gatewaysKnown: cluster.parts().every(part => part.name !== 'gateways' || part.synced)
  }
}

/** A restarted gateway counts bypasses from 0 again. */
function lookAgain(look: Looks | undefined, current: BarrierReading, now: Millis): Looks {
  const before = look?.current
  const known = before?.instance === current.instance ? before.bypasses : 0
  const quietSince = look === undefined || current.bypasses > known ? now : look.quietSince
  return { before, current, quietSince }
}

function rememberPlaces(
  matches: readonly Match[],
  drain: Drain,
  memory: Memory,
  { writer }: Sources,
  now: Millis
): void {
  const listed = new Set<string>()
  for (const { holder, node } of matches) {
    const key = `${holder.key} ${node.key}`
    listed.add(key)
    memory.places.set(key, { holder, node: node.key, removedAt: undefined })
  }
  for (const [key, place] of memory.places) {
    if (listed.has(key)) continue
    place.removedAt ??= writer.status(place.holder.key, place.node, drain.uid)?.acceptedAt ?? now
  }
}

function report(
  drain: Drain,
  { holder, node, removedAt }: Place,
  { writer }: Sources,
  before: Plan
): Evidence['holders'][number] {
  const common = { key: holder.key, observable: observable(holder) }
  if (removedAt !== undefined) return { ...common, state: 'removed', why: '', acceptedAt: removedAt }
  const listed = { ...common, acceptedAt: undefined }
  const kept = before.kept.find(k => k.holder === holder.key && k.node === node && k.uid === drain.uid)
  if (kept) return { ...listed, ...KEPT_STATE[kept.why] }
  const status = writer.status(holder.key, node, drain.uid)
  if (!status || status.state === 'removed') return { ...listed, state: 'listed', why: '' }
  return { ...listed, state: status.state, why: status.why }
}
