import type { HolderView } from '../../report/snapshot/holder-view.ts'
import type { GatewayView } from '../../report/snapshot/snapshot.ts'
import type { Lane } from './lanes.ts'

/** The state of one gateway for one holder. Times in ms. */
export interface Cell {
  /** How long the gateway has been behind; `null`: it is not known to be behind. */
  readonly behindMs: number | null
  /** The revision that its slowest worker has applied for this kind of object; `null` without the plugin. */
  readonly revision: number | null
  /** How long the gateway took to follow the last change of ready endpoints (`inMs`) and the last end of a pod; `null`: unknown. */
  readonly inMs: number | null
  readonly outMs: number | null
  /** Why the gateway is behind. If it is not behind: the evidence for that. */
  readonly why: string
}

/** The most gateways that get a column: more columns would not be readable. Gateways that are behind in a holder come first. */
const MOST_COLUMNS = 8

export function columnsOf(
  gateways: readonly GatewayView[],
  holders: readonly HolderView[]
): readonly GatewayView[] {
  const serving = gateways.filter(({ ready, terminating }) => ready && !terminating)
  if (serving.length <= MOST_COLUMNS) return serving
  const late = new Set(holders.flatMap(({ behind }) => behind?.gateways.map(({ gateway }) => gateway) ?? []))
  return serving
    .toSorted((a, b) => Number(late.has(b.name)) - Number(late.has(a.name)))
    .slice(0, MOST_COLUMNS)
}

/** The namespaces of the Services that holders follow, sorted. */
export const namespacesOf = (holders: readonly HolderView[]): readonly string[] =>
  [...new Set(holders.flatMap(({ service }) => (service ? [namespaceOf(service)] : [])))].toSorted()

const namespaceOf = (service: string): string => service.split('/', 1)[0] ?? ''

/** Holders that are behind come first, the oldest change on top; then holders with a measured lag. Empty `namespace`: all. */
export function matrixRows(holders: readonly HolderView[], namespace: string): readonly HolderView[] {
  const found =
    namespace === ''
      ? holders
      : holders.filter(({ service }) => service && namespaceOf(service) === namespace)
  const behind = found.filter(one => one.behind !== null)
  const measured = found.filter(one => one.behind === null && one.lags.length > 0)
  const others = found.filter(one => one.behind === null && one.lags.length === 0)
  behind.sort((a, b) => (a.behind?.since ?? 0) - (b.behind?.since ?? 0))
  return [...behind, ...measured, ...others]
}

/** How long each gateway took to seal (or confirm) the last ended pod, by holder key and gateway. `over`: ended drains, newest first. */
export function lastOut(over: readonly Lane[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>()
  for (const { drain, start } of over) {
    for (const { name, sealedAt, at } of drain.gateways) {
      const to = sealedAt ?? at
      if (to === undefined) continue
      for (const { key } of drain.holders) {
        const place = `${key} ${name}`
        if (!last.has(place)) last.set(place, Math.max(0, to - start))
      }
    }
  }
  return last
}

export function cellOf(
  holder: HolderView,
  gateway: Pick<GatewayView, 'name' | 'applied'>,
  out: ReadonlyMap<string, number>,
  now: number
): Cell {
  const { key, behind, lags, revision } = holder
  const late = behind?.gateways.find(one => one.gateway === gateway.name)
  const lag = lags.find(one => one.gateway === gateway.name)
  const applied = gateway.applied[key.split('/', 1)[0] ?? ''] ?? null
  const evidence = late?.evidence ?? lag?.evidence
  return {
    behindMs: late ? Math.max(0, now - late.since) : null,
    revision: applied === null ? null : Math.min(applied, revision),
    inMs: lag?.ms ?? null,
    outMs: out.get(`${key} ${gateway.name}`) ?? null,
    why:
      late?.why ??
      (applied !== null
        ? `every worker has applied revision ${applied}; the holder is of ${revision}`
        : evidence === 'observed'
          ? 'by reads of its Control API: one worker answered'
          : '')
  }
}
