import type { Mode } from '../gateway/mode.ts'
import { fail, ok, warn, type Check, type Finding } from './finding.ts'

/** The Admin API answers, takes our key, and is of a kind that may be written to. */
export function checkAdmin(
  detect: (signal: AbortSignal) => Promise<{ readonly mode: Mode; readonly why: string }>
): Check {
  return async signal => [findingOf(await detect(signal))]
}

function findingOf({ mode, why }: { readonly mode: Mode; readonly why: string }): Finding {
  const name = 'admin-api'
  switch (mode) {
    case 'etcd':
      return ok(name, 'the Admin API takes our key; APISIX runs with etcd')
    case 'standalone':
      return [
        warn(
          name,
          why,
          'load our plugin (apisix.barrier): without it nothing better than evidence observed can be had here'
        )
      ]
    case 'denied':
      return fail(name, why, 'check apisix.admin.keyFile or keyEnv (401) and allow_admin of APISIX (403)')
    case 'unreachable':
      return fail(name, why, 'check apisix.admin.url, the Service behind it and any NetworkPolicy')
  }
}
