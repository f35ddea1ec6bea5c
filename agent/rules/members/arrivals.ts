import type { Grade } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import type { HolderKey, Resource } from '../plan/holder.ts'
import { latest } from '../drain/times.ts'

/** The facts about one ready endpoint that arrives, from the parts that do I/O. Times by the agent's clock. */
export interface ArrivalEvidence {
  /** The holders that should list the endpoint. Empty: no holder is known, so the pod never counts as arrived. */
  readonly holders: readonly {
    readonly key: HolderKey
    /** When the Admin API was first seen to list it; `undefined`: not yet. */
    readonly listedAt: Millis | undefined
    /** The configuration revision that first listed it there; `undefined` if there is no revision. */
    readonly revision: number | undefined
  }[]
  /** Every gateway that must route to it: all that are Ready. */
  readonly gateways: readonly GatewayKnowledge[]
}

/** The configuration that one gateway is known to have applied. */
export interface GatewayKnowledge {
  readonly name: string
  /** When the list of workers was read; `undefined` if the plugin does not report them. */
  readonly toldAt: Millis | undefined
  /** The workers that serve. Each has its applied revisions, and the time of their last change. */
  readonly workers: readonly (Applied & { readonly appliedAt: Millis | undefined })[]
  /** When its Control API was first seen to list the endpoint in this holder. One worker answers, so this is a sample. */
  readonly observedAt: (holder: HolderKey) => Millis | undefined
}

/** Whether one gateway routes to the endpoint, and since when. */
interface GatewayArrival {
  readonly name: string
  /** `undefined`: not yet, or not known. */
  readonly at: Millis | undefined
  /** `barrier`: every worker reports it. `observed`: at least one worker has shown it. */
  readonly evidence: Extract<Grade, 'barrier' | 'observed'> | undefined
  /** The reason to wait; empty if the endpoint has arrived. */
  readonly why: string
}

export interface Arrival {
  /** For each holder, when every gateway listed the endpoint there. */
  readonly holders: readonly { readonly key: HolderKey; readonly at: Millis | undefined }[]
  readonly gateways: readonly GatewayArrival[]
  /** When the last gateway routed to it in the last holder; `undefined`: not yet. */
  readonly at: Millis | undefined
  readonly why: string
}

/**
 * The progress of an endpoint. A worker knows the endpoint if it has applied the revision in which the holder first listed it, or a later
 * revision of that kind. `appliedAt` is the time of the last change of any kind. So the time is never too early, but it is late if the
 * worker applied further changes between two reads.
 */
export function arrivalOf({ holders, gateways }: ArrivalEvidence): Arrival {
  const seen = gateways.map(gateway => ({
    gateway,
    knows: holders.map(holder => knows(gateway, holder))
  }))
  const perGateway = seen.map(({ gateway: { name }, knows }): GatewayArrival => {
    const behind = knows.find(({ at }) => at === undefined)
    if (behind || knows.length === 0)
      return { name, at: undefined, evidence: undefined, why: behind?.why ?? 'no holder is known to list it' }
    const evidence = knows.every(known => known.evidence === 'barrier') ? 'barrier' : 'observed'
    return { name, at: latest(knows.map(({ at }) => at)), evidence, why: '' }
  })
  const perHolder = holders.map(({ key }, i) => ({
    key,
    at: latest(seen.map(({ knows }) => knows[i]?.at))
  }))
  const behind = perGateway.find(({ at }) => at === undefined)
  return {
    holders: perHolder,
    gateways: perGateway,
    at: latest(perHolder.map(({ at }) => at)),
    why: whyNot(behind, gateways.length, holders.length)
  }
}

function whyNot(behind: GatewayArrival | undefined, gateways: number, holders: number): string {
  if (gateways === 0) return 'no gateway is known'
  if (holders === 0) return 'no holder is known to list it'
  return behind ? `${behind.name}: ${behind.why}` : ''
}

interface Known {
  readonly at: Millis | undefined
  readonly evidence: GatewayArrival['evidence']
  readonly why: string
}

function knows(
  { toldAt, workers, observedAt }: GatewayKnowledge,
  { key, listedAt, revision }: ArrivalEvidence['holders'][number]
): Known {
  if (toldAt !== undefined && workers.length > 0 && revision !== undefined) {
    const slowest = slowestOf(workers, kindOf(key))
    if (slowest >= revision) {
      const at = latest(workers.map(({ appliedAt }) => Math.min(appliedAt ?? toldAt, toldAt)))
      return { at, evidence: 'barrier', why: '' }
    }
    return not(`a worker has applied revision ${slowest}, ${key} lists it since ${revision}`)
  }
  const at = observedAt(key)
  if (at !== undefined) return { at, evidence: 'observed', why: '' }
  return not(listedAt === undefined ? `${key} does not list it yet` : `not seen to list it in ${key} yet`)
}

const not = (why: string): Known => ({ at: undefined, evidence: undefined, why })

/** The revisions of etcd that a worker reports as applied. */
interface Applied {
  /** The highest over all kinds of object; 0: none was read yet. */
  readonly revision?: number | null | undefined
  /** By kind of object, for the kinds that this APISIX has. */
  readonly revisions?: Readonly<Record<string, number>> | undefined
}

/**
 * The revision up to which a worker has applied one kind of object; `undefined` if it has not reported that. APISIX applies each kind
 * by itself (`apisix/core/config_etcd.lua`). After etcd was compacted or restored, one kind is read anew, while another waits seconds
 * for its next try. So the highest revision of all kinds proves nothing about one of them.
 */
const appliedOf = ({ revision, revisions }: Applied, kind: string): number | undefined =>
  (revisions?.[kind] ?? revision) || undefined

/** The revision up to which all of these workers have applied one kind of object; 0: some has not reported that. */
export const slowestOf = (workers: readonly Applied[], kind: string): number =>
  workers.reduce((least, worker) => Math.min(least, appliedOf(worker, kind) ?? 0), Infinity)

/** The kind of object that the holder is, or is a part of. */
const kindOf = (holder: HolderKey): Resource => holder.split('/', 1)[0] as Resource
