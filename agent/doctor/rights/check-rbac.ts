import { z } from 'zod'
import type { LeasePlace } from '../../kubernetes/lead/elector.ts'
import { fail, ok, warn, type Check, type Finding } from '../checks/cluster-lists.ts'

/** One call to the API server. Resolves with any status; rejects if there is no answer. `transport/connection.ts` implements it. */
type AskKubernetes = (
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal
) => Promise<{ readonly status: number; readonly json: unknown }>

const version = z.looseObject({ gitVersion: z.string() })

/** Checks that the API server answers, and accepts the agent's credentials. */
export function checkKubernetes(ask: AskKubernetes): Check {
  const name = 'kubernetes'
  return async signal => {
    const { status, json } = await ask('GET', '/version', undefined, signal)
    if (status === 401) return [refused(name)]
    const parsed = version.safeParse(json)
    if (status === 200 && parsed.success)
      return [ok(name, `the API server answers, version ${parsed.data.gitVersion}`)]
    const change = 'check that kubernetes.kubeconfig points to an API server'
    return [fail(name, `the API server answers ${status} to /version`, change)]
  }
}

/** The API server may answer /version to everybody, so a check of rights can be the first that is refused. */
const refused = (name: string): Finding =>
  fail(
    name,
    'the API server refuses our credentials (401)',
    'check kubernetes.kubeconfig and its context, or the ServiceAccount of the pod'
  )

/** Checks that each configured namespace exists. What the agent may not see is no evidence that it does. */
export function checkNamespaces(ask: AskKubernetes, namespaces: readonly string[]): Check {
  return async signal => {
    const asked = namespaces.map(name => ask('GET', `/api/v1/namespaces/${name}`, undefined, signal))
    const answers = await Promise.all(asked)
    const at = (status: number) => namespaces.filter((_, i) => answers[i]?.status === status)
    if (at(200).length === namespaces.length) return [ok('namespaces', `${namespaces.join(', ')}: in use`)]
    const what = `the configuration names ${at(404).join(', ')}, which does not exist`
    if (at(404).length > 0) return [fail('namespaces', what, 'correct kubernetes.namespaces')]
    return [warn('namespaces', 'the agent may not see whether each exists', 'let it get namespaces (rbac)')]
  }
}

/** One right of the agent at the API server. Without a right that is `needed`, the agent can answer no hook. */
interface Permission {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly needed: boolean
  readonly why: string
}

/** A right in one namespace, or in all, for any object or for one. */
interface Wanted extends Permission {
  readonly namespace: string | undefined
  readonly name?: string
}

const each = (verbs: readonly string[], rest: Omit<Permission, 'verb'>): readonly Permission[] =>
  verbs.map(verb => ({ verb, ...rest }))

const pods = { group: '', resource: 'pods', why: 'to see that pods end' }
const slices = { group: 'discovery.k8s.io', resource: 'endpointslices', why: 'to map Services to pods' }
const services = 'to see which addresses and names stand for pods, and which upstreams follow Services (sync)'
const owners = { group: 'apps', why: 'to see whether another pod may come before the last one is gone' }
const only = 'to see which namespaces say that all their requests come through APISIX'
const events = { group: 'events.k8s.io', resource: 'events', why: 'to say on the pod how its drain went' }
const lease = {
  group: 'coordination.k8s.io',
  resource: 'leases',
  why: 'so that one agent alone syncs and emits Events'
}

/** The agent's rights at the API server. The chart's RBAC grants exactly these, and those of the Lease. */
export const PERMISSIONS: readonly Permission[] = [
  ...each(['get', 'list', 'watch'], { ...pods, needed: true }),
  ...each(['list', 'watch'], { ...slices, needed: true }),
  ...each(['list', 'watch'], { group: '', resource: 'services', needed: false, why: services }),
  ...each(['get'], { group: '', resource: 'namespaces', needed: false, why: only }),
  ...each(['get'], { ...owners, resource: 'replicasets', needed: false }),
  ...each(['get'], { ...owners, resource: 'deployments', needed: false }),
  ...each(['create'], { ...events, needed: false })
]

/** The rights for an election, in the namespace of the Lease. Without one of them, every agent does all the work. */
export const LEASE_PERMISSIONS = each(['create', 'get', 'update'], { ...lease, needed: false })

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const review = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) })

/** Checks that the agent has these rights in every watched namespace, and at the Lease if there is an election. */
export function checkRbac(ask: AskKubernetes, namespaces: readonly string[], place?: LeasePlace): Check {
  const scopes = namespaces.length > 0 ? namespaces : [undefined]
  const wanted: Wanted[] = [
    ...scopes.flatMap(namespace => PERMISSIONS.map(permission => ({ ...permission, namespace }))),
    // RBAC cannot restrict `create` to one name, so `create` is asked without a name.
    ...(place
      ? LEASE_PERMISSIONS.map(one => ({ ...one, ...place, ...(one.verb === 'create' && { name: '' }) }))
      : [])
  ]
  return async signal => {
    const findings = await Promise.all(wanted.map(one => look(one, signal)))
    const problems = findings.filter(finding => finding !== undefined)
    // A refusal of the question itself is the same for every right.
    const each = new Map(problems.map(problem => [problem.what, problem]))
    return each.size > 0 ? [...each.values()] : [ok('rbac', `all ${wanted.length} permissions are granted`)]
  }

  async function look(one: Wanted, signal: AbortSignal): Promise<Finding | undefined> {
    const { verb, group, resource, namespace, name, needed, why } = one
    const resourceAttributes = {
      verb,
      group,
      resource,
      ...(namespace && { namespace }),
      ...(name && { name })
    }
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes }
    }
    const { status, json } = await ask('POST', PATH, body, signal)
    if (status === 401) return refused('rbac')
    const parsed = review.safeParse(json)
    if (!parsed.success)
      return fail(
        'rbac',
        `the agent cannot ask for its own rights: status ${status}`,
        'bind the ClusterRole system:basic-user to its account, which Kubernetes does for every account by default'
      )
    if (parsed.data.status.allowed) return undefined
    const what = `${verb} ${resource}${group && `.${group}`} ${namespace ? `in ${namespace}` : 'in all namespaces'}`
    const change = `add to the ${namespace ? `Role in ${namespace}` : 'ClusterRole'}: apiGroups ["${group}"], resources ["${resource}"], verbs ["${verb}"]`
    return (needed ? fail : warn)('rbac', `we may not ${what}, needed ${why}`, change)
  }
}
