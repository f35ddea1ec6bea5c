import type { GatewayFact } from '../drain/facts.ts'
import type { GatewayPod } from './gateway-fact.ts'
import { same } from './same.ts'
import type { Sink } from './sink.ts'

/** The gateways that may serve: unready and Terminating ones too, until their containers or their object are gone. */
export interface GatewayStore {
  list(): readonly GatewayFact[]
  /** Pods of gateways that have no address yet: they exist, and will serve soon. */
  readonly withoutIp: number
}

/** The store, and the side of it that only its reflector may use. `fixed` are listed by hand and never go. */
export function createGatewayStore(fixed: readonly GatewayFact[] = []): {
  readonly store: GatewayStore
  readonly sink: Sink<GatewayPod>
} {
  const pods = new Map<string, GatewayPod>()
  let listed = fixed
  let withoutIp = 0

  const refresh = () => {
    const mayServe = [...pods.values()].filter(pod => !pod.ended).map(pod => pod.gateway)
    listed = [...fixed, ...mayServe.filter(gateway => gateway.ip !== '')]
    withoutIp = mayServe.filter(gateway => gateway.ip === '').length
    return true
  }
  return {
    sink: {
      set(pod) {
        if (same(pods.get(pod.uid), pod)) return false
        pods.set(pod.uid, pod)
        return refresh()
      },
      gone: uid => pods.delete(uid) && refresh()
    },
    store: {
      list: () => listed,
      get withoutIp() {
        return withoutIp
      }
    }
  }
}
