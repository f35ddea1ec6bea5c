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

/** The addresses that a pod's node can have: bare hosts, or hosts with ports if the pod shares its host's address. */
export function nodesOf(pod: PodFact, ports: readonly number[]): NodeKey[] {
  if (!pod.hostNetwork) return pod.ips.map(ip => nodeKey(ip, undefined))
  const all = [...new Set([...pod.containerPorts, ...ports])]
  return pod.ips.flatMap(ip => all.map(port => nodeKey(ip, port)))
}

/**
 * The nodes on a host's address that still belong to a pod that has ended. The next pod there often has the same ports, but it takes
 * them over only once it is up.
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

/** Whether the plan removes its pod: it does for every drain that was not undone. */
export const isEnding = (drain: Drain | undefined): drain is Drain =>
  drain !== undefined && drain.phase !== 'undone'

/**
 * The nodes that lead only to the pod of this drain. Domain nodes never match, because their host is no pod IP. If a running pod with
 * another uid has the address of a node now, the node belongs to that pod. IPs are reused within a second, and the new pod must get
 * its requests at once.
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

/** Those of them that stay: pods that do not end. It does not matter whether they opted out of drains. */
export function livePodsAt(world: World, drains: Drains, node: HolderNode): PodFact[] {
  return podsAt(world, node).filter(pod => pod.deletionAt === undefined && isRunning(pod, drains))
}

/**
 * Whether the node serves: a live pod that is Ready, or waits only for the agent's readiness gate. An address outside of the pods' ranges
 * (a machine, a domain name) counts as serving, because the agent does not judge it. A node whose pod is gone or not known yet does not.
 */
export const serves = (world: World, drains: Drains, node: HolderNode): boolean =>
  podsAt(world, node).length === 0
    ? !world.isPodsPlace(node.host)
    : livePodsAt(world, drains, node).some(isUp)

/** Whether another pod that the agent does not drain has the address now. It may even be ending and have opted out. */
const isSomebodyElses = (world: World, drains: Drains, node: HolderNode, drain: Drain): boolean =>
  podsAt(world, node).some(pod => pod.uid !== drain.uid && isRunning(pod, drains))

const isRunning = (pod: PodFact, drains: Drains): boolean => !isOver(pod) && !isEnding(drains.get(pod.uid))

/** A pod with its own IP has every port; on a shared IP it only has its own ports. A node without a port may be any of them. */
const answersAt = (world: World, pod: PodFact, node: HolderNode): boolean =>
  !pod.hostNetwork ||
  node.port === undefined ||
  pod.containerPorts.includes(node.port) ||
  world.portsOf(pod).includes(node.port)
