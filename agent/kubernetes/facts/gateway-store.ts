import type { GatewayFact, Millis } from '../../rules/drain/facts.ts'
import type { GatewayPod } from './gateway-fact.ts'
import { same } from '../../base/same.ts'
import type { Sink } from '../reflect/watch-event.ts'

/** The gateways that may serve: unready and Terminating ones too, until their containers have ended. */
interface GatewayStore {
  list(): readonly GatewayFact[]
  /** Call it when a gateway can route no requests. It is listed again once its pod changes. */
  ended(id: string): void
}

/**
 * The store, and the interface that only its reflector may use. The `fixed` gateways come from an operator's list and are never removed.
 *
 * A pod that ends normally shows a final phase before its object goes. A gateway that is deleted by force, relabelled, or missing from
 * a list may still serve. It stays listed as Terminating, with `vanishedAt`, until `ended`, or until another gateway has its address.
 */
export function createGatewayStore(
  now: () => Millis,
  fixed: readonly GatewayFact[] = []
): { readonly store: GatewayStore; readonly sink: Sink<GatewayPod> } {
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
  return {
    sink: {
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
    },
    store: {
      list: () => listed,
      ended(id) {
        const pod = pods.get(id)
        if (pod?.gateway.unreadyAt !== undefined) pods.set(id, { ...pod, ended: true })
        vanished.delete(id)
        refresh()
      }
    }
  }
}
