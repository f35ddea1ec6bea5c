import type { Mode } from '../../gateway/inventory/mode.ts'
import { fail, ok, warn, type Check, type Finding } from './finding.ts'

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
