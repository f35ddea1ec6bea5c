import { allowedBy } from '../members/allowed.ts'
import { marksOf } from '../members/mark.ts'
import { settleClaims } from '../members/settle.ts'
import { ok, warn, wordsOf, type Check } from './finding.ts'
import type { Survey } from './kept-lists.ts'

const NAME = 'sync'
/** How many Services are named. */
const NAMED = 5

/**
 * Each Service that asks for an upstream gets it.
 *
 * @param allow `sync.allow`
 */
export function checkSync(survey: Pick<Survey, 'services' | 'inventory'>, allow: readonly string[]): Check {
  return async signal => {
    try {
      const [services, inventory] = await Promise.all([survey.services(signal), survey.inventory(signal)])
      const { claims, problems } = settleClaims(services.asking(), {
        allows: allowedBy(allow),
        followedBy: holder => marksOf(inventory.holders().get(holder))
      })
      if (problems.size === 0) return [ok(NAME, `${claims.size} upstreams follow Services`)]
      const told = [...problems].slice(0, NAMED).map(([service, why]) => `${service}: ${why}`)
      const more = problems.size > NAMED ? ` (and ${problems.size - NAMED} more)` : ''
      return [
        warn(
          NAME,
          `Services that no upstream follows: ${told.join(' | ')}${more}`,
          'correct the annotations of these Services, or sync.allow'
        )
      ]
    } catch (err) {
      return [
        warn(
          NAME,
          `the claims of Services cannot be told: ${wordsOf(err)}`,
          'see kubernetes, rbac and admin-api'
        )
      ]
    }
  }
}
