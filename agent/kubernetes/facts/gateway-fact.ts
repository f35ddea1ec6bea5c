import type { V1ObjectMeta, V1Pod, V1PodSpec, V1PodStatus } from '@kubernetes/client-node'
import type { GatewayFact } from '../../rules/drain/facts.ts'
import { identityOf } from '../transport/objects.ts'
import { isDialable } from './dialable.ts'
import { ipsOf } from './pod-fact.ts'
import { conditionIsTrue, fieldsOf, listOf, textOf } from '../../base/read.ts'

/** A gateway's pod: whether it has ended, and its fact. */
export interface GatewayPod {
  readonly uid: string
  /** Its containers have ended for good (phase Succeeded or Failed): it cannot serve any more. */
  readonly ended: boolean
  /** `ip` is empty until the pod has an address. */
  readonly gateway: GatewayFact
}

/** It never fails: `undefined` only without an identity. Unready and Terminating pods are facts like all others. */
export function toGatewayPod(object: unknown): GatewayPod | undefined {
  const { metadata, spec, status: statusOf } = fieldsOf<V1Pod>(object)
  const meta = fieldsOf<V1ObjectMeta>(metadata)
  const status = fieldsOf<V1PodStatus>(statusOf)
  const identity = identityOf(object)
  if (!identity) return undefined
  const { uid, name } = identity
  const runs = listOf(status.containerStatuses).map(each => fieldsOf(fieldsOf(each)['state'])['running'])
  return {
    uid,
    ended: status.phase === 'Succeeded' || status.phase === 'Failed',
    gateway: {
      id: uid,
      name,
      ip: ipsOf(status)[0] ?? '',
      ready: conditionIsTrue(status.conditions, 'Ready'),
      terminating: textOf(meta.deletionTimestamp) !== undefined,
      host: textOf(fieldsOf<V1PodSpec>(spec).nodeName),
      ...(runs.length > 0 && runs.every(running => running === undefined) && { stopped: true })
    }
  }
}

/**
 * Like `toGatewayPod`, without the pods whose address must not be called.
 *
 * @param local the cluster is on this machine
 */
export const gatewayPodReader =
  (local: boolean) =>
  (object: unknown): GatewayPod | undefined => {
    const pod = toGatewayPod(object)
    return pod && (pod.gateway.ip === '' || isDialable(pod.gateway.ip, local)) ? pod : undefined
  }

/** A gateway that an operator listed. No watch shows its end, so it always counts as ready. */
export function staticGateway(entry: { readonly name: string; readonly host: string }): GatewayFact {
  const { name, host: ip } = entry
  return { id: name, name, ip, ready: true, terminating: false, host: undefined, byHand: true }
}
