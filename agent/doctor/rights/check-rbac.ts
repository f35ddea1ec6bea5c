import { isAllowed } from './check-kubernetes.ts'
import { fail, ok, warn, wordsOf, type Check, type Finding } from '../checks/finding.ts'
import type { AskKubernetes } from './check-kubernetes.ts'

/** One right of the agent at the API server. Without a right that is `needed`, the agent can answer no hook. */
interface Permission {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly needed: boolean
  readonly why: string
}

/** The agent's rights at the API server. The chart's RBAC grants exactly these. */
export const PERMISSIONS: readonly Permission[] = [
  ...['get', 'list', 'watch'].map(verb => need(verb, '', 'pods', 'to see that pods end')),
  ...['list', 'watch'].map(verb =>
    need(verb, 'discovery.k8s.io', 'endpointslices', 'to map Services to pods')
  ),
  ...['list', 'watch'].map(verb =>
    wish(
      verb,
      '',
      'services',
      'to see which addresses and names stand for pods, and which upstreams follow Services (sync)'
    )
  ),
  wish('create', 'events.k8s.io', 'events', 'to say on the pod how its drain went')
]

/** Checks that the agent has these rights in every watched namespace. */
export function checkRbac(ask: AskKubernetes, namespaces: readonly string[]): Check {
  const scopes = namespaces.length > 0 ? namespaces : [undefined]
  return async signal => {
    try {
      const findings = await Promise.all(
        scopes.flatMap(namespace => PERMISSIONS.map(permission => reviewOne(permission, namespace, signal)))
      )
      const problems = findings.filter(finding => finding !== undefined)
      return problems.length > 0
        ? problems
        : [ok('rbac', `all ${PERMISSIONS.length} permissions are granted`)]
    } catch (err) {
      return [
        fail(
          'rbac',
          `the agent cannot ask for its own rights: ${wordsOf(err)}`,
          'bind the ClusterRole system:basic-user to its account, which Kubernetes does for every account by default'
        )
      ]
    }
  }

  async function reviewOne(
    permission: Permission,
    namespace: string | undefined,
    signal: AbortSignal
  ): Promise<Finding | undefined> {
    const { verb, group, resource, why } = permission
    const what = `${verb} ${resource}${group && `.${group}`} ${namespace ? `in ${namespace}` : 'in all namespaces'}`
    const wanted = { verb, group, resource, ...(namespace && { namespace }) }
    if (await isAllowed(ask, wanted, signal)) return undefined
    const change = `add to the ${namespace ? `Role in ${namespace}` : 'ClusterRole'}: apiGroups ["${group}"], resources ["${resource}"], verbs ["${verb}"]`
    return (permission.needed ? fail : warn)('rbac', `we may not ${what}, needed ${why}`, change)
  }
}

function need(verb: string, group: string, resource: string, why: string): Permission {
  return { verb, group, resource, needed: true, why }
}

function wish(verb: string, group: string, resource: string, why: string): Permission {
  return { verb, group, resource, needed: false, why }
}
