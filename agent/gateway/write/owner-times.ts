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

/** How long owners take to remove an ending pod themselves, learned from what they did. The only owner of that state. */
interface OwnerTimes {
  /** How long this owner gets, in ms. */
  of(owner: Owner): Millis
  /** The owner had from `since` until `until`, and the pod is gone now. */
  took(owner: Owner | undefined, since: Millis, until: Millis): void
  /** The owner had its time, and the agent had to remove the pod. */
  late(owner: Owner | undefined): void
}

/** A removal within this share of the owner's time was certainly made by the owner. Later, another agent may have made it. */
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
