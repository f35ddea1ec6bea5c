import type { LeasePlace } from '../../kubernetes/lead/lease.ts'
import { leaseFact, leasePath } from '../../kubernetes/lead/lease.ts'
import { isAllowed } from './check-kubernetes.ts'
import { ok, warn, wordsOf, type Check, type Finding } from '../checks/finding.ts'
import type { AskKubernetes } from './check-kubernetes.ts'

/** The rights for an election, in the namespace of the Lease. The chart's RBAC grants exactly these. */
export const LEASE_PERMISSIONS = ['create', 'get', 'update'].map(verb => ({
  verb,
  group: 'coordination.k8s.io',
  resource: 'leases'
}))

/** Reports whether a leader can be elected, and who leads. Without a leader each agent does all the work, so there is no failure here. */
export function checkLease(ask: AskKubernetes, place: LeasePlace | undefined): Check {
  return async signal => {
    if (!place) return [ok('leader', 'there is no election: every agent does all the work')]
    const lease = `${place.namespace}/${place.name}`
    try {
      const refused = await Promise.all(LEASE_PERMISSIONS.map(wanted => mayWe(ask, wanted, place, signal)))
      const findings = refused.filter(finding => finding !== undefined)
      if (findings.length > 0) return findings
      const { status, json } = await ask('GET', leasePath(place), undefined, signal)
      const holder = status === 200 ? leaseFact(json)?.holder : ''
      return [
        ok('leader', holder ? `${holder} holds the Lease ${lease}` : `no agent holds the Lease ${lease}`)
      ]
    } catch (err) {
      return [warn('leader', `the Lease ${lease} cannot be looked at: ${wordsOf(err)}`, 'see kubernetes')]
    }
  }
}

async function mayWe(
  ask: AskKubernetes,
  { verb, group, resource }: (typeof LEASE_PERMISSIONS)[number],
  { namespace, name }: LeasePlace,
  signal: AbortSignal
): Promise<Finding | undefined> {
  // RBAC cannot restrict `create` to one name, so `create` is asked without a name.
  const named = verb === 'create' ? {} : { name }
  const wanted = { verb, group, resource, namespace, ...named }
  if (await isAllowed(ask, wanted, signal)) return undefined
  return warn(
    'leader',
    `we may not ${verb} the Lease ${namespace}/${name}, so every agent does all the work`,
    `add to a Role in ${namespace}: apiGroups ["${group}"], resources ["${resource}"], verbs ["${verb}"]`
  )
}
