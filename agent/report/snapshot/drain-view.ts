import type {
  Ack,
  Drain,
  GatewayReport,
  Grade,
  HolderReport,
  LongLived,
  Proven
} from '../../rules/drain/drain.ts'
import { type Millis, latest } from '../../rules/drain/facts.ts'
import type { Status } from '../../round/gather/drain-status.ts'

/**
 * When each step of one drain happened, on the agent's clock; `null` until then. `decidedAt` is Kubernetes' own time (whole
 * seconds of the API server's clock): deletionTimestamp less the grace.
 */
export interface Moments {
  readonly decidedAt: Millis | null
  readonly seenAt: Millis
  readonly hookAt: Millis | null
  /** The Admin API accepted the removal from the last of the holders. */
  readonly acceptedAt: Millis | null
  /** The last gateway sealed the pod: no new request from then on. `null` if a gateway without the plugin cannot. */
  readonly sealedAt: Millis | null
  /** The last gateway confirmed. */
  readonly confirmedAt: Millis | null
  /** No ordinary request was in flight on any gateway (evidence `barrier` only). */
  readonly idleAt: Millis | null
  /** The first hook was answered. */
  readonly ackAt: Millis | null
  readonly goneAt: Millis | null
}

export interface DrainView {
  readonly uid: string
  readonly namespace: string
  readonly pod: string
  readonly owner: string | null
  readonly ips: readonly string[]
  readonly phase: Drain['phase']
  readonly deadline: Millis
  readonly moments: Moments
  /** `null` for a drain that was undone. */
  readonly verdict: {
    readonly kind: 'waiting' | 'proven'
    readonly grade: Grade | null
    /** 0: nothing routed to the pod. `null`: not known. */
    readonly places: number | null
    /** The hook is held as planned: no other endpoint serves yet. */
    readonly lastEndpoint: boolean
  } | null
  /**
   * Nothing that the agents know leads to the pod, and it called no hook. So even without a proof, its end put no request and no hook at
   * risk.
   */
  readonly unlisted: boolean
  readonly why: string
  /** Websockets and streams in flight to the pod at the last count; `null`: none, or nothing counts them. */
  readonly longLived: LongLived | null
  /** Per gateway: when it confirmed, or why not. */
  readonly gateways: readonly GatewayReport[]
  /** Each holder, with the time at which it dropped the pod. */
  readonly holders: readonly (HolderReport & { readonly at: Millis | null })[]
  /** Requests sent to the pod after its ack; `null` if nothing counts them. */
  readonly afterAck: number | null
  /** Hooks of this pod that this agent holds. */
  readonly hooks: number
}

/** How long one drain took to reach every gateway. */
export interface DrainLag {
  /** When the last gateway sealed the pod, or confirmed without a seal. */
  readonly at: Millis
  /** The sync lag, in ms: until no new request came. */
  readonly ms: number
  readonly uid: string
  readonly namespace: string
  /** `ReplicaSet/web-5d7f9c`; `null` for a pod without an owner. */
  readonly owner: string | null
}

/** An answered hook. One of another agent is text from outside: its pod's entry in a gateway had it. */
export interface AckView {
  readonly at: Millis
  /** The agent that answered. */
  readonly by: string
  readonly ack: Pick<Ack, 'pod' | 'elapsedMs' | 'status' | 'evidence' | 'why'> & { readonly result: string }
}

/** The identity of a finished drain: a pod can be undone more than once, but it ends only once. */
export const drainName = ({ uid, phase, moments }: Pick<DrainView, 'uid' | 'phase' | 'moments'>): string =>
  phase === 'undone' ? `${uid} ${moments.seenAt}` : uid

/** The API server writes whole seconds: the deletion was committed within one second after the time it states. */
const SECOND_MS = 1000

/**
 * The latest time at which Kubernetes can have decided: within the second that it states, and not after the agent saw it. A pod's
 * watch event follows its deletion within about a millisecond, so this time is closer to the truth than the start of that second.
 */
export function latestDecision({ decidedAt, seenAt }: Pick<Moments, 'decidedAt' | 'seenAt'>): Millis {
  return decidedAt === null ? seenAt : Math.max(decidedAt, Math.min(seenAt, decidedAt + SECOND_MS - 1))
}

type Due = 'decidedAt' | 'seenAt'

/**
 * Sync lag in ms, from the decision of Kubernetes (see `latestDecision`). It ends when every gateway had sealed the pod (no new request from
 * then on), or was seen without it. `null` if neither is known. Requests in flight are not part of it. A lower bound: the true lag is less
 * than a second longer, if the agent saw the deletion late.
 */
export const lagOf = (moments: Pick<Moments, Due | 'sealedAt' | 'confirmedAt'>): number | null =>
  elapsed(moments, moments.sealedAt ?? moments.confirmedAt)

/** From the decision of Kubernetes until the pod's last request had ended, in ms; `null` if nothing counted them. */
export const idleLagOf = (moments: Pick<Moments, Due | 'idleAt'>): number | null =>
  elapsed(moments, moments.idleAt)

const elapsed = (moments: Pick<Moments, Due>, to: Millis | null): number | null =>
  to === null ? null : Math.max(0, to - latestDecision(moments))

/** When the last holder dropped the pod; `undefined` while one lists it, or if none ever did. */
const acceptedAt = ({ places }: Status): Millis | undefined =>
  latest([...places.values()].map(place => place.removedAt))

/** The round that begins a drain runs a little after its event, and later on a busy machine. */
const seenAt = ({ since }: Drain, { heardAt }: Status): Millis => Math.min(since, heardAt ?? since)

/** When the last gateway confirmed; the round that combines the reports of the gateways runs later. */
const confirmedAt = ({ at, gateways }: Proven): Millis =>
  Math.min(at, latest(gateways.map(gateway => gateway.at)) ?? at)

/** When the last request had ended at the last gateway, by the gateways' own times if they report them. */
const idleAt = ({ at, gateways }: Proven): Millis =>
  Math.min(at, latest(gateways.map(gateway => gateway.idleAt ?? gateway.at)) ?? at)

/** When the last gateway sealed the pod; `undefined` while one has not, or if one cannot. */
const sealedAt = (drain: Drain): Millis | undefined => {
  const gateways = drain.phase === 'undone' ? [] : drain.verdict.gateways
  return gateways.every(gateway => gateway.sealedAt !== undefined)
    ? latest(gateways.map(gateway => gateway.sealedAt))
    : undefined
}

/** All moments on the time line of one drain. */
export function momentsOf(drain: Drain, status: Status): Moments {
  const proven = drain.phase !== 'undone' && drain.verdict.kind === 'proven' ? drain.verdict : undefined
  return {
    decidedAt: drain.decidedAt ?? null,
    seenAt: seenAt(drain, status),
    hookAt: status.hookAt ?? null,
    acceptedAt: acceptedAt(status) ?? null,
    sealedAt: sealedAt(drain) ?? null,
    confirmedAt: proven ? confirmedAt(proven) : null,
    idleAt: proven?.grade === 'barrier' ? idleAt(proven) : null,
    ackAt: status.ackAt ?? null,
    goneAt: drain.phase === 'gone' ? drain.at : null
  }
}
