import type { PodUid } from '../../rules/drain/facts.ts'
import type { Observer } from '../../round/observer.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { GatewayState } from '../../gateway/barrier/gateway-state.ts'
import type { Sources } from '../../round/gather/sources.ts'

/**
 * Checks the promise: counts requests that a gateway sent to a pod after its hook was answered on the evidence of the barrier. The
 * plugin counts all requests that are sent to a sealed node. Those counted before the ack are subtracted, because the drain waited
 * for them.
 */
interface AfterAck {
  readonly observer: Observer
  /** `undefined` if there is no such count: the evidence is another one, or there is no ack yet. */
  of(uid: PodUid): number | undefined
}

/** The most drains that are followed. The oldest, which are long gone, are forgotten first. */
const MOST = 1000

interface Followed {
  /** By gateway: the count before the ack. */
  readonly before: ReadonlyMap<string, number>
  readonly since: Map<string, number>
}

type Late = ReadonlyMap<string, number>

export function createAfterAck(
  { cluster, barrier }: Pick<Sources, 'cluster' | 'barrier'>,
  { afterAck, gatewayNames }: Pick<Metrics, 'afterAck' | 'gatewayNames'>
): AfterAck {
  const followed = new Map<PodUid, Followed>()
  const counted = new WeakMap<GatewayState, Late>()

  /** Late requests by uid. Cached, because many rounds see the same state. */
  const lateAt = (id: string): Late => {
    const state = barrier?.state(id)
    if (!state) return new Map()
    const known = counted.get(state)
    if (known) return known
    const late = new Map<string, number>()
    for (const { uid, late: n = 0 } of state.told?.entries ?? []) {
      if (n > 0) late.set(uid, (late.get(uid) ?? 0) + n)
    }
    counted.set(state, late)
    return late
  }

  return {
    observer: {
      ack({ evidence }, drain) {
        if (!drain || evidence !== 'barrier' || followed.has(drain.uid)) return
        const before = cluster
          .gateways()
          .map(({ id }) => [id, barrier?.reading(drain.uid, id)?.late ?? 0] as const)
        followed.set(drain.uid, { before: new Map(before), since: new Map() })
        const [oldest] = followed.keys()
        if (followed.size > MOST && oldest !== undefined) followed.delete(oldest)
      },
      round() {
        for (const { id, name } of cluster.gateways()) {
          for (const [uid, late] of lateAt(id)) {
            const one = followed.get(uid as PodUid)
            const now = late - (one?.before.get(id) ?? 0)
            const known = one?.since.get(id) ?? 0
            if (!one || now <= known) continue
            one.since.set(id, now)
            afterAck.inc({ gateway: gatewayNames.labelOf(name) }, now - known)
          }
        }
      }
    },
    of(uid) {
      const one = followed.get(uid)
      return one && [...one.since.values()].reduce((sum, n) => sum + n, 0)
    }
  }
}
