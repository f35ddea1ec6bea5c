import type { DesiredEntry } from '../confirm/barrier.ts'
import { sealable } from '../confirm/proof.ts'
import type { Drain } from '../drain/drain.ts'
import type { GatewayFact, Millis, NodeKey } from '../drain/facts.ts'
import { nodesOf } from '../plan/match.ts'
import type { World } from '../plan/world.ts'
import type { Memory } from './memory.ts'

/** How long before the deadline an entry is sealed whatever is known: from then on an honest 503 beats a dead pod. */
export const SEAL_BEFORE_MS = 250

/** What the deny-list of every gateway should hold for a drain now; `undefined` where it should hold nothing. */
export function desiredEntry(
  drain: Drain,
  memory: Memory,
  nodes: readonly NodeKey[],
  gateways: readonly GatewayFact[],
  now: Millis
): DesiredEntry | undefined {
  if (drain.phase === 'undone') return undefined
  const waiting = drain.phase === 'draining'
  memory.sealed ||= !waiting || maySeal(drain, memory, gateways, now)
  return { uid: drain.uid, nodes, state: memory.sealed ? 'sealed' : 'draining', watch: waiting }
}

/** All gateways or none: a gateway that still needs the pod keeps it alive for that gateway's users. */
function maySeal(drain: Drain, memory: Memory, gateways: readonly GatewayFact[], now: Millis): boolean {
  const lastEndpoint =
    drain.phase === 'draining' && drain.verdict.kind === 'waiting' && drain.verdict.lastEndpoint
  return gateways.every(({ id }) => {
    const look = memory.looks.get(id) ?? { before: undefined, current: undefined }
    const settings = { sealBeforeMs: SEAL_BEFORE_MS, waitForInflight: false }
    return sealable(look, drain, lastEndpoint, now, settings).seal
  })
}

/**
 * The addresses of a drain that are still its own: an address that belongs to a living pod of another uid by now is
 * lifted at once. Pods that share their host's address are told apart by port, so there the address stays.
 */
export function barrierNodes(drain: Drain, memory: Memory, world: World): readonly NodeKey[] {
  if (drain.pod.hostNetwork) return nodesOf(drain.pod, memory.ports)
  const ips = drain.pod.ips.filter(ip => {
    const owners = world.ownersOf(ip)
    return !owners.some(
      owner => owner.uid !== drain.uid && owner.deletionAt === undefined && !owner.hostNetwork
    )
  })
  return nodesOf({ ...drain.pod, ips }, memory.ports)
}
