import type { InjectSettings } from '../../hook/inject/settings.ts'
import { isAllowed } from './check-kubernetes.ts'
import { ok, warn, wordsOf, type Check, type Finding } from '../checks/finding.ts'
import type { AskKubernetes } from './check-kubernetes.ts'

/** The rights with which the webhook maintains its certificate, each for one object only. The chart's RBAC grants exactly these. */
export const INJECTION_PERMISSIONS = [
  { group: '', resource: 'secrets' },
  { group: 'admissionregistration.k8s.io', resource: 'mutatingwebhookconfigurations' }
].flatMap(what => ['get', 'update'].map(verb => ({ ...what, verb })))

/** Checks that the webhook may maintain its certificate. If not, pods are still created, but without a hook: a warning, no failure. */
export function checkInjection(ask: AskKubernetes, read: () => InjectSettings): Check {
  return async signal => {
    try {
      const settings = read()
      const refused = await Promise.all(
        INJECTION_PERMISSIONS.map(wanted => mayWe(ask, wanted, settings, signal))
      )
      const findings = refused.filter(finding => finding !== undefined)
      if (findings.length > 0) return findings
      return [ok('injection', 'the webhook may keep its certificate')]
    } catch (err) {
      return [warn('injection', `the webhook cannot be looked at: ${wordsOf(err)}`, 'see kubernetes')]
    }
  }
}

async function mayWe(
  ask: AskKubernetes,
  { verb, group, resource }: (typeof INJECTION_PERMISSIONS)[number],
  { namespace, secret, configuration }: InjectSettings,
  signal: AbortSignal
): Promise<Finding | undefined> {
  const place = resource === 'secrets' ? { namespace, name: secret } : { name: configuration }
  if (await isAllowed(ask, { verb, group, resource, ...place }, signal)) return undefined
  const kind = place.namespace === undefined ? 'a ClusterRole' : `a Role in ${place.namespace}`
  return warn(
    'injection',
    `we may not ${verb} ${place.name} of ${resource}, so pods will be made without the hook`,
    `add to ${kind}: apiGroups ["${group}"], resources ["${resource}"], resourceNames ["${place.name}"], verbs ["${verb}"]`
  )
}
