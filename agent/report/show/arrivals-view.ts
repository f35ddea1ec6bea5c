import type { Clock } from '../../base/clock.ts'
import { type Millis, type PodFact, type PodUid, latest } from '../../rules/drain/facts.ts'
import { gatewaysHave, servingNames } from '../behind/differences.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ArrivalView } from '../snapshot/snapshot.ts'
import type { Sources } from '../../round/gather/sources.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'

interface ArrivalsOptions {
  readonly sources: Pick<Sources, 'cluster' | 'inventory' | 'barrier' | 'probe' | 'mode'>
  /** By host: the holders that should list it, and do not yet. */
  readonly lackedBy: () => ReadonlyMap<string, readonly HolderKey[]>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'syncLag' | 'gatewayLag' | 'gatewayNames'>
}

/** Between two looks, in ms: as often as holders are compared, right before. */
const LOOK_MS = 200
/** How many finished arrivals are kept. */
const KEPT = 500

interface Coming {
  /** By gateway and holder: when the gateway routed to the pod there. */
  readonly routedAt: Map<string, Millis>
  /** `undefined`: no holder lists or lacks the pod, so it may not belong to APISIX at all. */
  view: ArrivalView | undefined
}

const hasArrived = (view: ArrivalView | undefined): boolean => typeof view?.routedAt === 'number'

/** Follows every pod that becomes Ready until every gateway routes to it. It asks no gateway: `behind-view.ts` requests the readings. */
export function createArrivals({ sources, lackedBy, clock, metrics }: ArrivalsOptions) {
  const { cluster, inventory } = sources
  const coming = new Map<PodUid, Coming>()
  let past: readonly ArrivalView[] = []
  let lookedAt = -Infinity
  const keep = (view: ArrivalView) => void (past = [view, ...past.slice(0, KEPT - 1)])

  const look = (): void => {
    const ready = cluster.pods.becameReady()
    for (const [uid, { view }] of coming) {
      if (ready.has(uid)) continue
      coming.delete(uid)
      if (view && !hasArrived(view)) keep(view)
    }
    const serving = servingNames(cluster.gateways())
    const have = gatewaysHave(sources, cluster.gateways())
    const lacked = lackedBy()
    for (const [uid, readyAt] of ready) {
      const one = coming.get(uid) ?? { routedAt: new Map(), view: undefined }
      coming.set(uid, one)
      const pod = cluster.pods.get(uid)
      if (!pod || pod.hostNetwork || hasArrived(one.view)) continue
      one.view = viewOf(pod, readyAt, one, serving, have, lacked)
      if (!one.view || !hasArrived(one.view)) continue
      keep(one.view)
      measure(one.view)
    }
  }

  const viewOf = (
    pod: PodFact,
    readyAt: Millis,
    { routedAt }: Coming,
    serving: readonly string[],
    have: ReturnType<typeof gatewaysHave>,
    lacked: ReturnType<typeof lackedBy>
  ): ArrivalView | undefined => {
    const listed = new Set(pod.ips.flatMap(ip => inventory.byHost(ip)))
    const lacking = pod.ips.flatMap(ip => lacked.get(ip) ?? [])
    if (listed.size + lacking.length === 0) return undefined
    const whys = lacking.map(key => `${key} does not list it yet`)
    const at = new Map(serving.map(name => [name, [] as (Millis | undefined)[]]))
    for (const holder of listed) {
      const known = new Map(have(holder, -Infinity).map(one => [one.name, one]))
      for (const name of serving) {
        const place = `${name} ${holder.key}`
        const found = known.get(name)
        if (found?.at !== undefined && !routedAt.has(place)) routedAt.set(place, Math.max(readyAt, found.at))
        if (!routedAt.has(place))
          whys.push(`${name}: ${found?.why || `not seen to list it in ${holder.key} yet`}`)
        at.get(name)?.push(routedAt.get(place))
      }
    }
    const gateways = [...at].map(([name, times]) => ({
      name,
      at: lacking.length > 0 || times.includes(undefined) ? null : (latest(times) ?? null)
    }))
    if (serving.length === 0) whys.push('no gateway is known')
    return {
      uid: pod.uid,
      namespace: pod.namespace,
      pod: pod.name,
      readyAt,
      routedAt: whys.length > 0 ? null : Math.max(...gateways.map(({ at }) => at ?? readyAt)),
      holders: [...listed].map(({ key }) => key),
      why: whys[0] ?? '',
      gateways
    }
  }

  const measure = ({ readyAt, routedAt, gateways }: ArrivalView): void => {
    const seconds = (to: Millis | null) => ((to ?? readyAt) - readyAt) / 1000
    metrics.syncLag.observe({ direction: 'arrival' }, seconds(routedAt))
    for (const { name, at } of gateways)
      metrics.gatewayLag.observe(
        { direction: 'arrival', gateway: metrics.gatewayNames.labelOf(name) },
        seconds(at)
      )
  }

  return {
    observer: {
      round() {
        const now = clock.now()
        if (now < lookedAt + LOOK_MS) return
        lookedAt = now
        look()
      }
    },
    /** Pods on their way in, and those that have arrived or were given up, newest first. */
    views: (): readonly ArrivalView[] => [
      ...[...coming.values()].flatMap(({ view }) => (view && !hasArrived(view) ? [view] : [])).toReversed(),
      ...past
    ]
  }
}
