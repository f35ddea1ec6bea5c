import type { Drains, Ack, Drain, Hook } from '../../rules/drain/drain.ts'
import type { Millis, NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { HiddenPlace, Ways } from '../../rules/plan/hidden.ts'
import type { Holder } from '../../rules/plan/holder.ts'
import { NO_SUCCESSORS, type ServicePort } from '../../rules/plan/successors.ts'
import type { ServiceName } from '../../kubernetes/facts/slice-store.ts'
import type { Log } from '../../base/log.ts'

/** One place in APISIX that lists the pod, or has listed it since the drain began. */
export interface Place {
  holder: Holder
  readonly node: NodeKey
  /** When the node was first seen missing there, whichever writer removed it; `undefined` while it is listed. */
  removedAt: Millis | undefined
}

/** The state of a drain that is kept between rounds, apart from the drain itself. Only rounds write it. */
export type Status = ReturnType<typeof newStatus>

const newStatus = () => ({
  places: new Map<string, Place>(),
  /** By gateway: why its workers do not allow the seal. */
  unsealed: new Map<string, string>(),
  /** See `isUnlisted` in `proof.ts`. */
  unlisted: false,
  /** Resolved target ports, kept because the slices drop the pod before it is gone. */
  ports: [] as readonly number[],
  /** The pod's ports by Service, kept for the same reason as `ports`. */
  standing: [] as readonly ServicePort[],
  /** Another pod's entry has named this pod as a successor, so requests came to it, whatever lists say. */
  tookOver: false,
  /** The successors that the pod has now. */
  successors: NO_SUCCESSORS,
  /** The pod's present or former Services, kept for the same reason as `ports`. */
  services: [] as readonly ServiceName[],
  /** The ways to the pod that gateways look for, kept for the same reason as `ports`. */
  ways: new Map() as Ways,
  /** What rules a proof out, as `ways` cannot show it. */
  unaskable: [] as readonly HiddenPlace[],
  /** How many nodes the entry denied in the last round. */
  denied: 0,
  /** A gateway has allowed the seal, so some may be sealed already. */
  sealing: false,
  /** The entry was sealed although a gateway knew no other node: nothing may come in time, or the deadline is near. */
  sealForced: false,
  /** When the agent saw the pod's deletion, a little before the round that began the drain. */
  heardAt: undefined as Millis | undefined,
  hookAt: undefined as Millis | undefined,
  /** The longest sleep that a hook of the pod would run instead. */
  sleepMs: 0,
  ackAt: undefined as Millis | undefined
})

/**
 * Whether an end without a proof put no request and no hook at risk: nothing leads to the pod, and it called no hook. Such an end is
 * reported as unlisted, neither as proved nor as not proved.
 */
export const isRiskless = ({ unlisted, hookAt }: Status): boolean => unlisted && hookAt === undefined

export type Statuses = ReturnType<typeof createStatuses>

export function createStatuses() {
  const statuses = new Map<PodUid, Status>()
  return {
    of(uid: PodUid): Status {
      const status = statuses.get(uid) ?? newStatus()
      statuses.set(uid, status)
      return status
    },
    /** Drops the statuses that belong to no drain and no held hook any more. */
    keep(drains: Drains, held: ReadonlySet<PodUid>) {
      for (const uid of statuses.keys()) if (!drains.has(uid) && !held.has(uid)) statuses.delete(uid)
    }
  }
}

/** Notified of each new phase, answer and round; read-only. */
export interface Observer {
  /** A drain changed its phase. `before` is undefined when the drain begins, `after` when the drain is forgotten. */
  drain?(before: Drain | undefined, after: Drain | undefined, status: Status): void
  /** The first answer of its kind: see `createFirsts`. */
  ack?(ack: Ack, drain: Drain | undefined, status: Status, hook: Hook): void
  round?(tookMs: number): void
}

/** Notifies all observers. An observer that fails never fails the caller: reporting must not keep a hook from its answer. */
export const createNotifier =
  (observers: readonly Observer[], log: Log) =>
  (of: (observer: Observer) => void): void => {
    for (const observer of observers) {
      try {
        of(observer)
      } catch (err) {
        log.error({ err }, 'observer failed')
      }
    }
  }
