import type { V1Pod, V1PodReadinessGate, V1PodSpec, V1PodStatus } from '@kubernetes/client-node'
import { IN_UPSTREAM } from '../../rules/drain/annotations.ts'
import type { PodFact } from '../../rules/drain/facts.ts'
import { conditionIsTrue, fieldsOf, listOf, textOf } from '../../base/read.ts'

type ReadPod = (object: unknown) => PodFact | undefined

/** Reads pods together with the state of the agent's readiness gate, which `read` leaves out. */
export const withGate =
  (read: ReadPod): ReadPod =>
  object => {
    const fact = read(object)
    const gate = gateOf(object)
    return fact && gate ? { ...fact, gate } : fact
  }

/** Computed as the kubelet computes Ready: from ContainersReady and every gate (readiness gates, KEP-580). */
function gateOf(object: unknown): PodFact['gate'] {
  const { spec, status } = fieldsOf<V1Pod>(object)
  const gates = listOf(fieldsOf<V1PodSpec>(spec).readinessGates).map(gate =>
    textOf(fieldsOf<V1PodReadinessGate>(gate).conditionType)
  )
  if (!gates.includes(IN_UPSTREAM)) return undefined
  const { conditions } = fieldsOf<V1PodStatus>(status)
  const isTrue = (type: string | undefined) => type !== undefined && conditionIsTrue(conditions, type)
  const others = ['ContainersReady', ...gates.filter(type => type !== IN_UPSTREAM)]
  if (!others.every(isTrue)) return undefined
  return isTrue(IN_UPSTREAM) ? 'open' : 'waiting'
}
