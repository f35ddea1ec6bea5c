import { allowedBy, settleClaims } from '../../rules/members/members.ts'
import { everyHidden } from '../../round/gather/hidden-places.ts'
import type { LeadsTo } from '../../rules/plan/hidden.ts'
import { createServiceStore } from '../../kubernetes/facts/service-store.ts'
import { ok, warn, fail, type Check, type ClusterLists, type Finding } from './cluster-lists.ts'
import type { Mode } from '../../gateway/inventory/mode-watch.ts'

const HIDDEN = 'hidden'

/**
 * Reports each place in APISIX that leads to pods without listing them. The hooks of such pods get a 503.
 *
 * @param coversL4 asks whether every gateway covers L4; called only if APISIX proxies L4
 */
export function checkHidden(
  survey: ClusterLists,
  coversL4: (signal: AbortSignal) => Promise<boolean>
): Check {
  return async signal => {
    const inventory = await survey.inventory(signal)
    const [{ store: pods }, slices, services] = await Promise.all([
      survey.pods(signal),
      survey.slices(signal),
      // A missing right is reported by rbac. Places that name pods by other addresses are found all the same.
      survey.services(signal).catch(() => createServiceStore().store)
    ])
    const hasL4 = inventory.holders().keys().some(inventory.isL4)
    const parts = { cluster: { pods, slices, services, parts: () => [] }, inventory }
    const places = everyHidden(parts, hasL4 && (await coversL4(signal)))
    if (places.length === 0) return [ok(HIDDEN, 'no place leads to pods without listing them')]
    return places.map(place => warn(HIDDEN, tellLeadsTo(place), place.change))
  }
}

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

/** The place as one line of text, without the remedy. */
export function tellLeadsTo({ holder, name, why, pods, count }: LeadsTo): string {
  const others = count > pods.length ? ' and others' : ''
  const led = `${count} ${count === 1 ? 'pod' : 'pods'} (${pods.join(', ')}${others})`
  return `${holder}${name === null ? '' : ` (${name})`}: ${why}; it may lead to ${led}`
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
