import { allowedBy, settleClaims } from '../../rules/members/members.ts'
import type { AdminApi } from '../../gateway/apisix/admin-api.ts'
import { isDenied } from '../../base/errors.ts'
import { ok, warn, fail, wordsOf, type Check, type ClusterLists } from './cluster-lists.ts'

const SYNC = 'sync'
/** The finding names at most this many Services. */
const NAMED = 5

/**
 * Checks that each Service that claims an upstream gets it.
 *
 * @param allow `sync.allow`
 */
export function checkSync(survey: Pick<ClusterLists, 'services'>, allow: readonly string[]): Check {
  return async signal => {
    const services = await survey.services(signal)
    const { claims, problems } = settleClaims(services.asking(), allowedBy(allow))
    if (problems.size === 0) return [ok(SYNC, `${claims.size} upstreams follow Services`)]
    const told = [...problems].slice(0, NAMED).map(([service, why]) => `${service}: ${why}`)
    const more = problems.size > NAMED ? ` (and ${problems.size - NAMED} more)` : ''
    return [
      warn(
        SYNC,
        `Services that no upstream follows: ${told.join(' | ')}${more}`,
        'correct the annotations of these Services, or sync.allow'
      )
    ]
  }
}

const NAME = 'admin-api'

/** Checks that the Admin API answers, accepts the agent's key, and runs in a mode that allows writes. */
export function checkAdmin(admin: Pick<AdminApi, 'standalone'>): Check {
  return async signal => {
    try {
      if ((await admin.standalone(signal)) === undefined)
        return [ok(NAME, 'the Admin API takes our key; APISIX runs with etcd')]
      return [
        warn(
          NAME,
          'API-driven standalone: every gateway holds its own whole document, so it is never written here',
          'load our plugin (apisix.barrier): without it nothing better than evidence observed can be had here'
        )
      ]
    } catch (error) {
      return [fail(NAME, wordsOf(error), isDenied(error) ? OPEN_IT : REACH_IT)]
    }
  }
}

const OPEN_IT =
  '401: give the agent the key that APISIX has: in its chart apisix.admin.credentials.admin, or the Secret of credentials.secretName, or deployment.admin.admin_key of apisix.fullCustomConfig; 403: add the network of the pods to apisix.admin.allow.ipList'
const REACH_IT = 'correct that; apisix.admin.url must be an Admin API of APISIX, which the agent can reach'
