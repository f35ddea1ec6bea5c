import { isIP } from 'node:net'
import type { V1ObjectMeta, V1Pod, V1PodSpec, V1PodStatus } from '@kubernetes/client-node'
import { addressRanges, conditionIsTrue, fieldsOf, listOf, textOf, same } from '../../base/read.ts'
import type { GatewayFact, Millis } from '../../rules/drain/facts.ts'
import { identityOf } from '../transport/objects.ts'
import { ipsOf } from './pod-fact.ts'
import type { Sink } from '../reflect/follow.ts'

/** Addresses that no gateway can have: this host, link-local ones (cloud metadata), multicast groups, and the unspecified address. */
const isNever = addressRanges([
  '0.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/128',
  'fe80::/10',
  'fd00:ec2::254/128',
  'ff00::/8'
])
const isLoopback = addressRanges(['127.0.0.0/8', '::1/128'])

/**
 * Whether the agent may call the address of a gateway's pod, with its token. The address comes from the pod's status. Whoever writes that
 * status must not be able to send the agent to the cloud's metadata service or to the agent itself.
 *
 * @param local loopback is allowed too: the whole cluster is on this machine
 */
export const isDialable = (address: string, local: boolean): boolean =>
  isIP(address) !== 0 && !address.includes('%') && !isNever(address) && (local || !isLoopback(address))

/** Whether the API server has a loopback address: then pods can have one too. */
export function isLocal(origin: string): boolean {
  const { hostname } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || isLoopback(host)
}

/** A gateway's pod: whether it has ended, and its fact. */
interface GatewayPod {
  readonly uid: string
  /** Its containers have ended for good (phase Succeeded or Failed): it cannot serve any more. */
  readonly ended: boolean
  /** `ip` is empty until the pod has an address. */
  readonly gateway: GatewayFact
}

/** Never throws; `undefined` only without an identity. Unready and Terminating pods are facts like all others. */
export function toGatewayPod(object: unknown): GatewayPod | undefined {
  const { metadata, spec, status: statusOf } = fieldsOf<V1Pod>(object)
  const meta = fieldsOf<V1ObjectMeta>(metadata)
  const status = fieldsOf<V1PodStatus>(statusOf)
  const identity = identityOf(object)
  if (!identity) return undefined
  const { uid, name, namespace } = identity
  const runs = listOf(status.containerStatuses).map(each => fieldsOf(fieldsOf(each)['state'])['running'])
  return {
    uid,
    ended: status.phase === 'Succeeded' || status.phase === 'Failed',
    gateway: {
      id: uid,
      name: `${namespace}/${name}`,
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

/**
 * The store, and the interface that only its reflector may use. The `fixed` gateways come from an operator's list and are never removed.
 *
 * A pod that ends normally shows a final phase before its object goes. A gateway that is deleted by force, relabelled, or missing from
 * a list may still serve. It stays listed as Terminating, with `vanishedAt`, until `ended`, or until another gateway has its address.
 */
export function createGatewayStore(now: () => Millis, fixed: readonly GatewayFact[] = []) {
  const pods = new Map<string, GatewayPod>()
  const vanished = new Map<string, GatewayFact>()
  let listed = fixed

  const refresh = () => {
    const mayServe = [...pods.values()].filter(({ ended, gateway }) => !ended && gateway.ip !== '')
    const known = [...fixed, ...mayServe.map(pod => pod.gateway)]
    for (const [id, { ip }] of vanished) if (known.some(gateway => gateway.ip === ip)) vanished.delete(id)
    listed = [...known, ...vanished.values()]
    return true
  }
  const sink: Sink<GatewayPod> = {
    set(pod) {
      const before = pods.get(pod.uid)
      const gateway = { ...pod.gateway, unreadyAt: before?.gateway.unreadyAt ?? now() }
      const next = gateway.ready && !gateway.terminating ? pod : { ...pod, gateway }
      if (same(before, next)) return false
      pods.set(pod.uid, next)
      vanished.delete(pod.uid)
      return refresh()
    },
    gone(uid, last) {
      const pod = pods.get(uid)
      if (!pod) return false
      pods.delete(uid)
      if (!pod.ended && last?.ended !== true && pod.gateway.ip !== '')
        vanished.set(uid, { ...pod.gateway, ready: false, terminating: true, vanishedAt: now() })
      return refresh()
    }
  }
  return {
    sink,
    store: {
      /** The gateways that may serve: unready and Terminating ones too, until their containers have ended. */
      list: () => listed,
      /** Call it when a gateway can route no requests. It is listed again once its pod changes. */
      ended(id: string) {
        const pod = pods.get(id)
        if (pod?.gateway.unreadyAt !== undefined) pods.set(id, { ...pod, ended: true })
        vanished.delete(id)
        refresh()
      }
    }
  }
}
