import { saysThatItEnds } from './eligible.ts'
import type { Millis, PodFact } from './facts.ts'

/** Controllers whose pods all do the same work. All ReplicaSets of a Deployment or a Rollout are one workload (`pod-fact.ts`). */
const INTERCHANGEABLE: ReadonlySet<string> = new Set([
  'ReplicaSet.apps',
  'ReplicationController',
  'CloneSet.apps.kruise.io'
])

/**
 * The role of a pod. Only a pod of the same role may get its requests, or its node in a list. `undefined`: no other pod has it.
 *
 * A place may lead to one pod of a StatefulSet or a DaemonSet, because its pods are shards, replicas of a primary, or what runs on one host.
 * So the pod that follows has the same name, or is on the same host. A mirror pod keeps its name, and all mirror pods of a host have that
 * host as their owner.
 */
export function roleOf({ namespace, workload, name, host }: PodFact): string | undefined {
  if (workload === undefined) return undefined
  const controller = workload.slice(0, workload.indexOf('/'))
  const role = (which: string) => `${namespace} ${workload} ${which}`
  if (INTERCHANGEABLE.has(controller)) return role('')
  if (controller === 'Node' || isKind(controller, 'StatefulSet')) return role(name)
  if (isKind(controller, 'DaemonSet') && host !== undefined) return role(host)
  return undefined
}

/** Whether the second pod may follow the first one: their role is the same. */
export function isOfRole(pod: PodFact, other: PodFact): boolean {
  const role = roleOf(pod)
  return role !== undefined && role === roleOf(other)
}

/** Whether its controller makes the next pod only after this one is gone. A DaemonSet with a surge makes it before the end. */
export const isReplacedAfterwards = ({ workload = '' }: PodFact): boolean =>
  ['StatefulSet', 'DaemonSet', 'Job'].some(kind => isKind(workload.slice(0, workload.indexOf('/')), kind))

/** Whether the next pod in its place will have the same address, because such a workload has one pod on each host. */
export const hasFixedAddress = ({ hostNetwork, owner = '' }: PodFact): boolean =>
  hostNetwork && (owner.startsWith('DaemonSet/') || owner.startsWith('Node/'))

/** Whether it is of this kind, in any API group. */
const isKind = (controller: string, kind: string): boolean =>
  controller === kind || controller.startsWith(`${kind}.`)

/** How long before its end a pod's labels may have changed because of that end, in ms. */
const SETTLED_MS = 120_000

/**
 * A new copy of a pod; of one that ends, with the labels that it had before. Operators give the label of a role to another pod shortly
 * before an end, or during it, and lists of nodes follow later.
 */
export function withLabels(pod: PodFact, last: PodFact | undefined, now: Millis): PodFact {
  if (last && saysThatItEnds(last)) return { ...pod, labelKey: last.labelKey }
  const changed = last && last.labelKey !== pod.labelKey
  const since = last?.before && now < last.before.until ? last.before : undefined
  const before = since ?? (changed ? { labelKey: last.labelKey, until: now + SETTLED_MS } : undefined)
  if (before === undefined) return pod
  return saysThatItEnds(pod) ? { ...pod, labelKey: before.labelKey } : { ...pod, before }
}
