import { allowedBy, settleClaims } from '../../rules/members/members.ts'
import { ok, warn, fail, type Check, type ClusterLists, type Finding } from './cluster-lists.ts'
import type { Mode } from '../../gateway/inventory/mode-watch.ts'

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

const FINDINGS: Readonly<Record<Mode, (why: string) => Finding>> = {
  etcd: () => ok(NAME, 'the Admin API takes our key; APISIX runs with etcd'),
  standalone: why =>
    warn(
      NAME,
      why,
      'load our plugin (apisix.barrier): without it nothing better than evidence observed can be had here'
    ),
  denied: why =>
    fail(
      NAME,
      why,
      '401: give the agent the key that APISIX has: in its chart apisix.admin.credentials.admin, or the Secret of credentials.secretName, or deployment.admin.admin_key of apisix.fullCustomConfig; 403: add the network of the pods to apisix.admin.allow.ipList'
    ),
  unreachable: why =>
    fail(
      NAME,
      why,
      'correct that; apisix.admin.url must be an Admin API of APISIX, which the agent can reach'
    )
}

/** Checks that the Admin API answers, accepts the agent's key, and runs in a mode that allows writes. */
export function checkAdmin(
  detect: (signal: AbortSignal) => Promise<{ readonly mode: Mode; readonly why: string }>
): Check {
  return async signal => {
    const { mode, why } = await detect(signal)
    return [FINDINGS[mode](why)]
  }
}
