import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Owner } from '../../rules/plan/holder.ts'
import {
  UNKNOWN_OWNER,
  ownerLate,
  ownersTime,
  ownerTook,
  type OwnersCourse
} from '../../rules/plan/owners-time.ts'

/** How long owners take to remove an ending pod themselves, learned from earlier removals. Only this part has this state. */
interface OwnerTimes {
  /** How long this owner gets, in ms. */
  of(owner: Owner): Millis
  /** The holder does not list the pod any more. The owner had the time from `since` until `until` for the removal. */
  took(owner: Owner | undefined, since: Millis, until: Millis): void
  /** The owner has not removed the pod in its time, so the agent has removed it. */
  late(owner: Owner | undefined): void
}

/** The owner itself made a removal within this share of its time. After that, another agent may have made it. */
const OWNERS_PART = 0.8

export function createOwnerTimes(clock: Clock): OwnerTimes {
  const courses = new Map<Owner, OwnersCourse>()
  const of = (owner: Owner): OwnersCourse => courses.get(owner) ?? UNKNOWN_OWNER
  return {
    of: owner => ownersTime(of(owner), clock.now()),
    took(owner, since, until) {
      const tookMs = clock.now() - since
      if (owner !== undefined && tookMs < OWNERS_PART * (until - since))
        courses.set(owner, ownerTook(of(owner), tookMs))
    },
    late(owner) {
      if (owner !== undefined) courses.set(owner, ownerLate(of(owner), clock.now()))
    }
  }
}
