import type { EndpointFact, Millis, NodeKey } from '../../rules/drain/facts.ts'
import type { Claim } from '../../rules/members/claim.ts'
import { fullWeight } from '../../rules/members/member-edits.ts'
import { addedAtFor } from '../../rules/members/slow-start.ts'
import type { Holder, HolderKey } from '../../rules/plan/holder.ts'

/** The state of a claim between two checks. */
interface Course {
  /** When each node became a member. */
  readonly since: Map<NodeKey, Millis>
  /** Former members that are still listed: they identify leftover nodes of pods that are gone. */
  readonly were: Set<NodeKey>
  looked: {
    readonly holder: Holder | undefined
    readonly slices: readonly EndpointFact[]
    readonly at: Millis
  }
}

/** The courses of all claims, by holder. The only owner of that state. */
interface Courses {
  of(holder: HolderKey): Course
  /** Updates the course of a claim. */
  update(claim: Claim, members: ReadonlySet<NodeKey>, holder: Holder | undefined): Course
  /** Drops the courses of all other holders. */
  keep(claims: ReadonlyMap<HolderKey, Claim>): void
}

export function createCourses(now: () => Millis): Courses {
  const courses = new Map<HolderKey, Course>()
  const of = (key: HolderKey): Course => {
    const known = courses.get(key)
    if (known) return known
    const fresh: Course = {
      since: new Map(),
      were: new Set(),
      looked: { holder: undefined, slices: [], at: -Infinity }
    }
    courses.set(key, fresh)
    return fresh
  }
  return {
    of,
    update(claim, members, holder) {
      const course = of(claim.holder)
      const { since, were } = course
      const listed = new Map(holder?.nodes.map(node => [node.key, node.weight]))
      for (const key of since.keys()) if (!members.has(key)) since.delete(key)
      for (const key of members) {
        const weight = listed.get(key)
        if (!since.has(key))
          since.set(key, weight === undefined || !holder ? now() : risenFrom(claim, holder, weight, now()))
        were.add(key)
      }
      for (const key of were) if (!members.has(key) && !listed.has(key)) were.delete(key)
      return course
    },
    keep(claims) {
      for (const key of courses.keys()) if (!claims.has(key)) courses.delete(key)
    }
  }
}

const risenFrom = (claim: Claim, holder: Holder, weight: number, now: Millis): Millis =>
  addedAtFor(weight, fullWeight(claim, holder), claim.slowStartMs, now)
