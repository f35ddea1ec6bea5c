import type { Millis, PodFact, PodUid } from './facts.ts'

/** The signs that a pod ends, in no order. The first one starts the drain. */
export type Witness = 'deletion' | 'hook' | 'phase' | 'deleted'

/** A container whose hook has called from the pod's own address: the kubelet is about to stop it, whether the pod ends or stays. */
export interface Stop {
  /** Absent: the call named no container, so it counts for all. */
  readonly container: string | undefined
  /** The run of the container that the status showed at the call (`runOf`). */
  readonly run: string
  readonly at: Millis
}

/** What proves a drain: the barrier of every gateway, or, without the plugin, reads of every gateway (`observed.ts`). */
export type Grade = 'barrier' | 'observed'

interface DrainBase {
  readonly uid: PodUid
  /** The pod as last seen; kept after its object is gone. */
  readonly pod: PodFact
  /** When Kubernetes committed the deletion, by the API server's clock: whole seconds, so up to one second early. */
  readonly decidedAt: Millis | undefined
  /** When each witness was first seen. The drain began at the earliest of these times. */
  readonly witnesses: Readonly<Partial<Record<Witness, Millis>>>
  readonly since: Millis
  /** When the answer to the hook must have been sent: the end of the grace minus the reserve. */
  readonly deadline: Millis
  /** The containers that their hooks have reported to stop. */
  readonly stops: readonly Stop[]
  /** The ports of these containers. `isWhole`: the whole pod is denied, because it ends or a hook named no container. */
  readonly ports: readonly number[]
  readonly isWhole: boolean
}

/**
 * One pod on its way out of service. The agent watches `proven` and `expired` drains until the pod is gone, because a writer may
 * put the node back. A `gone` drain ends when no holder lists the node.
 */
export type Drain = DrainBase &
  (
    | { readonly phase: 'draining'; readonly verdict: Verdict }
    | { readonly phase: 'proven'; readonly at: Millis; readonly verdict: Proven }
    | { readonly phase: 'expired'; readonly at: Millis; readonly verdict: Verdict }
    | { readonly phase: 'gone'; readonly at: Millis; readonly verdict: Verdict }
    | { readonly phase: 'undone'; readonly at: Millis; readonly why: string }
  )

export type Drains = ReadonlyMap<PodUid, Drain>

interface OfGateway {
  readonly name: string
  /** When the gateway sealed the pod, so that no new request can come. It confirms once the requests in flight have ended. */
  readonly sealedAt?: Millis | undefined
  /** When the last ordinary request to the pod had ended there, after the seal. The agent may learn of it later, at `at`. */
  readonly idleAt?: Millis | undefined
  /** Why the gateway has confirmed nothing, in words that an operator can act on; else empty. */
  readonly why: string
}

/** A gateway that has sealed the pod, and then counted 0 ordinary requests in flight. `at`: when, by the agent's clock. */
export interface Idle extends OfGateway {
  readonly grade: 'barrier'
  readonly at: Millis
}

/** A gateway whose Control API has not listed the pod since `at`. */
export interface Without extends OfGateway {
  readonly grade: 'observed'
  readonly at: Millis
}

/** The knowledge about one gateway for one drain. */
export type GatewayReport =
  Idle | Without | (OfGateway & { readonly grade: undefined; readonly at: undefined })

/** The knowledge about one holder for one drain. */
export interface HolderReport {
  /** Such as `upstreams/web` or `routes/r1/upstream`. */
  readonly key: string
  readonly state: 'listed' | 'writing' | 'removed' | 'kept-last' | 'foreign' | 'dry-run' | 'failed'
  readonly why: string
}

type Some<T> = readonly [T, ...T[]]

/** Why a drain is proven. Only a seal and a count of 0 at every gateway make a `barrier`. */
export type Proof =
  | { readonly grade: 'barrier'; readonly gateways: Some<Idle> }
  /** `removedAt`: from when on no list had the pod. */
  | { readonly grade: 'observed'; readonly gateways: Some<Without>; readonly removedAt: Millis }

export type Proven = Proof & {
  readonly kind: 'proven'
  /** In how many places of a worker's configuration the pod was listed: 0 if nothing routes to it; `undefined`: not known. */
  readonly places: number | undefined
  /** The pod was sealed because of the deadline. A gateway that knew no other node then answered 503 (docs/how-it-works.md). */
  readonly forced: boolean
  /** Places in APISIX without another node: their requests go to the pod's successors until their owner lists other nodes. */
  readonly succeeded: readonly string[]
  /**
   * Websockets and streams that the drain did not wait for: the pod ends them at SIGTERM. `undefined`: there are none, or nothing counts
   * them.
   */
  readonly longLived?: LongLived
  readonly at: Millis
  readonly why: string
  readonly holders: readonly HolderReport[]
}

/** Not proven yet. */
export interface Waiting {
  readonly kind: 'waiting'
  /** Some holder keeps the node only because it is the last one. */
  readonly lastEndpoint: boolean
  /** Every known gateway has sealed the entry: the pod gets no new request, and only requests in flight are left. */
  readonly barred: boolean
  /** No proof can come, so hooks are not held any longer. */
  readonly vain: boolean
  /** The change that an operator can make; absent if there is only the usual advice. */
  readonly change?: string
  /** Websockets and streams in flight to the pod, waited for or not. `undefined`: there are none, or nothing counts them. */
  readonly longLived?: LongLived
  /** Check again at this time even if nothing changes (a settle time). */
  readonly until: Millis | undefined
  readonly why: string
  readonly gateways: readonly GatewayReport[]
  readonly holders: readonly HolderReport[]
}

/** The present result of the evidence. Waiting is a result, not an error. */
export type Verdict = Proven | Waiting

/** A hook that is being held. */
export interface Hook {
  /** Unique per call: a pod with two containers calls twice. */
  readonly id: string
  readonly uid: PodUid
  readonly receivedAt: Millis
  /** The container that called: `?container=`. */
  readonly container?: string | undefined
  /** `?timeout=` in ms from `receivedAt`. */
  readonly timeoutMs: number | undefined
  /** The sleep that follows a 503, from the hook's start: `?sleep=`. */
  readonly sleepMs?: number | undefined
  /** A sleep that the hook replaces, and that covered other traffic than that of APISIX too: `?atLeast=`. */
  readonly atLeastMs?: number | undefined
}

interface Answered {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly elapsedMs: number
  readonly gateways: readonly GatewayReport[]
  readonly holders: readonly HolderReport[]
  /** See `Proven.succeeded`. */
  readonly successors: readonly string[]
  /** Websockets and streams that are still in flight to the pod: the pod ends them at SIGTERM. `null`: none, or not known. */
  readonly longLived: LongLived | null
  /** One sentence: why this answer, and why not better evidence. */
  readonly why: string
}

/**
 * A 200, which replaces the caller's own sleep: every gateway has sealed the pod, and no ordinary request to it is in flight. Without the
 * plugin: every gateway was seen without the pod, for as long as a sleep (evidence `observed`). Only `proved()` makes one, from a proof.
 */
export interface Proved extends Answered {
  readonly status: 200
  readonly result: 'drained'
  readonly evidence: Proven['grade']
  readonly gateways: Proven['gateways']
  /** In how many places the pod was listed. 0: nothing routes to it. `null`: not known. */
  readonly places: number | null
  /** No other pod could take over in time: a gateway that knew no other node answers 503 since the seal. */
  readonly noReplacement: boolean
}

/** A 503: `curl -f … || sleep 5` sleeps. `stays`: the pod does not end (a container restart), or it opts out. */
export interface Unproved extends Answered {
  readonly status: 503
  readonly result: 'unproved' | 'stays'
  readonly evidence: 'none'
  /** The change that an operator can make to get a proof. */
  readonly change: string
}

/** The answer to a preStop hook: the status and the JSON body of `POST /v1/prestop`. */
export type Ack = Proved | Unproved

/** Whether the limit of the call was over (`?timeout=`), not the grace of the pod. */
export const isOwnLimit = (
  { timeoutMs = Infinity }: Pick<Hook, 'timeoutMs'>,
  { status, elapsedMs }: Ack
): boolean => status === 503 && elapsedMs >= timeoutMs

/**
 * Requests in flight to one pod that do not end by themselves, by kind. No gateway can end them in their own protocol; the pod can, once
 * it has received SIGTERM.
 */
export interface LongLived {
  /** Answered with 101: websockets, and other upgraded protocols. */
  readonly upgraded: number
  /** Server-sent events, by their content type. */
  readonly sse: number
  /** gRPC streams, and answers that have lasted for longer than the plugin's `stream_after`. */
  readonly streams: number
  /** Age of the oldest one in ms; 0: not known yet. */
  readonly oldestMs: number
}

/** How many there are, of all kinds. */
export const countOf = ({ upgraded, sse, streams }: LongLived): number => upgraded + sse + streams

/** The sum over several addresses or gateways, with the age of the oldest. */
export function together(all: readonly LongLived[]): LongLived {
  const sum = (of: (one: LongLived) => number) => all.reduce((total, one) => total + of(one), 0)
  return {
    upgraded: sum(one => one.upgraded),
    sse: sum(one => one.sse),
    streams: sum(one => one.streams),
    oldestMs: Math.max(0, ...all.map(one => one.oldestMs))
  }
}

/** Such as `3 websockets, 1 event stream, 2 streams`. */
export const longLivedWords = ({ upgraded, sse, streams }: LongLived): string =>
  [counted(upgraded, 'websocket'), counted(sse, 'event stream'), counted(streams, 'stream')]
    .filter(words => words !== '')
    .join(', ')

const counted = (n: number, what: string): string => (n === 0 ? '' : `${n} ${what}${n === 1 ? '' : 's'}`)

/** Everything that the loop knows about one pod (one uid) in this round. */
export interface Seen {
  /** The pod as last seen, by the watch or in an answer of the API server. */
  readonly pod: PodFact
  /** The object is gone: a DELETED event, or it is missing from a complete list. Never true for a stale watch. */
  readonly gone: boolean
  /** The watches of pods and EndpointSlices are live, so a pod that they do not show as ending does not end. */
  readonly current: boolean
  /** When the first hook arrived that is still held. */
  readonly hookAt: Millis | undefined
  /** The held hooks that came from the pod's own address, and those that gateways tell; empty without the barrier: only a seal can be taken back. */
  readonly calls: readonly Stop[]
  /** The ports of the pod to which something may route. */
  readonly routed: readonly number[]
  /** Some holder or gateway still lists the pod. `undefined`: no inventory yet. */
  readonly listed: boolean | undefined
  /** The verdict on the evidence (`prove`); `undefined` before any was gathered. */
  readonly verdict: Verdict | undefined
}

/** The settings that drains depend on. All times in ms. */
export interface DrainSettings {
  /** The part of its grace that the pod keeps for its own shutdown, after the answer. */
  readonly reserveMs: number
  /** How far the API server's clock is behind the agent's; it is added to `deletionTimestamp`. Absent: they agree. */
  readonly serverBehindMs?: number
  /** Only pods of some namespaces are seen, so an unseen pod may have the address of a finished one. Absent: no. */
  readonly someNamespacesOnly?: boolean
  /** How long the drain of a gone pod is kept while the agent does not know whether a holder lists the pod, in ms. */
  readonly ghostMs: number
}
