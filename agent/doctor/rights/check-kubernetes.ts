import { z } from 'zod'
import { fail, ok, warn, type Check, type Finding } from '../checks/finding.ts'
import type { ClusterLists } from '../checks/cluster-lists.ts'

/** One call to the API server. Resolves with any status; rejects if there is no answer. `transport/connection.ts` implements it. */
export type AskKubernetes = (
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
export const refused = (name: string): Finding =>
  fail(
    name,
    'the API server refuses our credentials (401)',
    'check kubernetes.kubeconfig and its context, or the ServiceAccount of the pod'
  )

const NAMESPACES = 'namespaces'

/** Checks that each configured namespace exists. If the agent may not read a namespace, it is a warning if no pod is in it. */
export function checkNamespaces(
  ask: AskKubernetes,
  survey: Pick<ClusterLists, 'pods'>,
  namespaces: readonly string[]
): Check {
  return async signal => {
    const findings = await Promise.all(namespaces.map(namespace => look(namespace, signal)))
    const problems = findings.filter(finding => finding !== undefined)
    return problems.length > 0 ? problems : [ok(NAMESPACES, `${namespaces.join(', ')}: in use`)]
  }

  async function look(namespace: string, signal: AbortSignal): Promise<Finding | undefined> {
    const { status } = await ask('GET', `/api/v1/namespaces/${namespace}`, undefined, signal)
    if (status === 200) return undefined
    if (status === 404) {
      return fail(
        NAMESPACES,
        `the configuration names namespace ${namespace}, which does not exist`,
        'correct kubernetes.namespaces'
      )
    }
    const { store } = await survey.pods(signal)
    for (const pod of store.values()) if (pod.namespace === namespace) return undefined
    return warn(
      NAMESPACES,
      `no pod is in namespace ${namespace}, and the agent may not ask whether it exists`,
      'check kubernetes.namespaces'
    )
  }
}
