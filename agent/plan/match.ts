import type { Drain, Drains } from '../drain/drain.ts'
import { isOver, isUp } from '../drain/eligible.ts'
import { nodeKey, type NodeKey, type PodFact } from '../drain/facts.ts'
import type { Holder, HolderNode } from './holder.ts'
import { nodesAt } from './nodes-at.ts'
import type { World } from './world.ts'

/** One node of one holder, and the ending pod that it leads to. */
export interface Match {
  readonly holder: Holder
  readonly node: HolderNode
  readonly drain: Drain
}

/** The addresses under which a pod can be a node: bare hosts, or hosts with ports if it shares its host's address. */
export function nodesOf(pod: PodFact, ports: readonly number[]): NodeKey[] {
  if (!pod.hostNetwork) return pod.ips.map(ip => nodeKey(ip, undefined))
  const all = [...new Set([...pod.containerPorts, ...ports])]
  return pod.ips.flatMap(ip => all.map(port => nodeKey(ip, port)))
}

/**
 * Which of these nodes on a host's address are still those of a pod that has ended. The next pod there often has the same ports: it has
 * them once it is up, and not before.
 */
export function leftOnHost(
  world: World,
  { uid, ips }: PodFact,
  nodes: readonly NodeKey[]
): readonly NodeKey[] {
  const next = ips
    .flatMap(ip => world.ownersOf(ip))
    .filter(pod => pod.uid !== uid && pod.deletionAt === undefined && pod.hostNetwork && isUp(pod))
  const taken = new Set(next.flatMap(pod => nodesOf(pod, world.portsOf(pod))))
  return nodes.filter(node => !taken.has(node))
}

/** Whether a drain removes its pod: every drain does, except one that was undone. */
export const isEnding = (drain: Drain | undefined): drain is Drain =>
  drain !== undefined && drain.phase !== 'undone'

/**
 * The nodes that lead only to the pod of this drain. Domain nodes never match: their host is no pod IP. If the address of a node
 * belongs to a running pod with another uid now, the node is that pod's: IPs are reused within a second, and the new pod must get its
 * traffic at once.
 */
export function endingNodes(world: World, drains: Drains, drain: Drain): Match[] {
  return drain.pod.ips.flatMap(ip =>
    world.holdersOf(ip).flatMap(holder =>
      nodesAt(holder.nodes, ip)
        .filter(node => answersAt(world, drain.pod, node))
        .filter(node => !isSomebodyElses(world, drains, node, drain))
        .map(node => ({ holder, node, drain }))
    )
  )
}

/** Every pod object that this node leads to; several if an IP is shared or was given out again. */
export function podsAt(world: World, node: HolderNode): PodFact[] {
  return world.ownersOf(node.host).filter(pod => answersAt(world, pod, node))
}

/** Those of them that stay: not ending, whether the agent drains them or they ask to be left alone. */
export function livePodsAt(world: World, drains: Drains, node: HolderNode): PodFact[] {
  return podsAt(world, node).filter(pod => pod.deletionAt === undefined && isRunning(pod, drains))
}

/**
 * A live pod that is Ready (or only waits to be listed: our readiness gate), or an address outside of the pods' ranges: a machine or a
 * domain name, which the agent does not judge. A node whose pod is gone does not serve, nor does a pod that is not known yet.
 */
export const serves = (world: World, drains: Drains, node: HolderNode): boolean =>
  podsAt(world, node).length === 0
    ? !world.isPodsPlace(node.host)
    : livePodsAt(world, drains, node).some(isUp)

/** A pod of another uid that the agent does not drain has the address now. It may even be ending and ask to be left alone. */
const isSomebodyElses = (world: World, drains: Drains, node: HolderNode, drain: Drain): boolean =>
  podsAt(world, node).some(pod => pod.uid !== drain.uid && isRunning(pod, drains))

const isRunning = (pod: PodFact, drains: Drains): boolean => !isOver(pod) && !isEnding(drains.get(pod.uid))

/** An own IP is the pod's at every port; of a shared one it has its own ports only. A node without port may be any. */
const answersAt = (world: World, pod: PodFact, node: HolderNode): boolean =>
  !pod.hostNetwork ||
  node.port === undefined ||
  pod.containerPorts.includes(node.port) ||
  world.portsOf(pod).includes(node.port)
