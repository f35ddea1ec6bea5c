import type { Millis, PodFact, PodUid } from './facts.ts'
import type { LongLived } from './long-lived.ts'

/** The signs that a pod ends, in no order. The first one starts the drain. */
export type Witness = 'deletion' | 'hook' | 'disruption' | 'slice' | 'phase' | 'deleted'

/** The grades of evidence for a drain, best first. See `docs/how-it-works.md`, evidence. */
export type Grade = 'barrier' | 'observed' | 'accepted' | 'timer'

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
  /** Container restarts when the drain began. A higher count means that the pod stays (a liveness restart). */
  readonly restartsAtStart: number
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

/** The knowledge about one gateway for one drain. */
export interface GatewayReport {
  readonly name: string
  /** The best grade that this gateway has given; `undefined` = it has confirmed nothing. */
  readonly grade: Grade | undefined
  /** When the gateway confirmed, by the agent's clock. */
  readonly at: Millis | undefined
  /** When the gateway sealed the pod, so that no new request can come. It confirms once the requests in flight have ended. */
  readonly sealedAt?: Millis | undefined
  /** When the last ordinary request to the pod had ended there, after the seal. The agent may learn of it later, at `at`. */
  readonly idleAt?: Millis | undefined
  /** Why the gateway has no better grade, in words that an operator can act on; empty if no better grade is possible. */
  readonly why: string
}

/** The knowledge about one holder for one drain. */
export interface HolderReport {
  /** Such as `upstreams/web` or `routes/r1/upstream`. */
  readonly key: string
  readonly state: 'listed' | 'writing' | 'removed' | 'kept-last' | 'foreign' | 'dry-run' | 'failed'
  readonly why: string
}

/** A grade that shows the state of the gateways. `timer` only shows that time has passed. */
type ProofGrade = Exclude<Grade, 'timer'>

export interface Proven {
  readonly kind: 'proven'
  readonly result: 'drained' | 'removed' | 'not-routed'
  readonly grade: ProofGrade
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
  readonly gateways: readonly GatewayReport[]
  readonly holders: readonly HolderReport[]
}

/** Not proven yet. */
export interface Waiting {
  readonly kind: 'waiting'
  /** The best grade that *every* gateway has reached so far. */
  readonly grade: Grade | undefined
  /** Some holder keeps the node only because it is the last one. */
  readonly lastEndpoint: boolean
  /** Every known gateway has sealed the entry: the pod gets no new request, and only requests in flight are left. */
  readonly barred: boolean
  /** The floor is over, and no better grade is required or possible, so hooks are not held any longer. */
  readonly floorOver: boolean
  /** The change that an operator can make; absent if there is only the usual advice. */
  readonly change?: string
  /** Websockets and streams in flight to the pod, waited for or not. `undefined`: there are none, or nothing counts them. */
  readonly longLived?: LongLived
  /** Check again at this time even if nothing changes (a settle time, the floor). */
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
  /** `?timeout=` in ms from `receivedAt`. */
  readonly timeoutMs: number | undefined
}

/** All grades, best first: their order is used in comparisons. */
export const GRADES: readonly Grade[] = ['barrier', 'observed', 'accepted', 'timer']

/** Whether `grade` is at least as good as `minimum`; false without a grade. */
export function atLeast(grade: Grade | undefined, minimum: Grade): boolean {
  return grade !== undefined && GRADES.indexOf(grade) <= GRADES.indexOf(minimum)
}
