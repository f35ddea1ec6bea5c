import type { PodFact } from './facts.ts'

/**
 * Whether both pods have the same controller; all ReplicaSets of a Deployment count as one. All mirror pods of a host have that host as
 * their owner, so their names must be equal too.
 */
export function isOfWorkload(pod: PodFact, other: PodFact): boolean {
  if (pod.owner === undefined || other.owner === undefined || pod.namespace !== other.namespace) return false
  if (pod.owner.startsWith('Node/')) return pod.owner === other.owner && pod.name === other.name
  return workloadOf(pod.owner) === workloadOf(other.owner)
}

/** Whether the next pod in its place will have the same address, because such a workload has one pod on each host. */
export const hasFixedAddress = ({ hostNetwork, owner = '' }: PodFact): boolean =>
  hostNetwork && (owner.startsWith('DaemonSet/') || owner.startsWith('Node/'))

const workloadOf = (owner: string): string =>
  owner.startsWith('ReplicaSet/') ? owner.replace(/-[a-z0-9]+$/, '') : owner
