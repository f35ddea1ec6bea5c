import { z } from 'zod'
import { fail, ok, warn, wordsOf, type Check, type Finding } from '../checks/finding.ts'
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
  return async signal => {
    const name = 'kubernetes'
    try {
      const { status, json } = await ask('GET', '/version', undefined, signal)
      if (status === 401) {
        return [
          fail(
            name,
            'the API server refuses our credentials (401)',
            'check kubernetes.kubeconfig and its context, or the ServiceAccount of the pod'
          )
        ]
      }
      const parsed = version.safeParse(json)
      if (status !== 200 || !parsed.success) {
        return [
          fail(
            name,
            `the API server answers ${status} to /version`,
            'check that kubernetes.kubeconfig points to an API server'
          )
        ]
      }
      return [ok(name, `the API server answers, version ${parsed.data.gitVersion}`)]
    } catch (err) {
      return [
        fail(
          name,
          `the API server cannot be reached: ${wordsOf(err)}`,
          'correct that, or name another cluster (kubernetes.kubeconfig, kubernetes.context)'
        )
      ]
    }
  }
}

/** The access in question: `resourceAttributes` of a SelfSubjectAccessReview. */
export interface Wanted {
  readonly verb: string
  readonly group: string
  readonly resource: string
  /** Absent: all namespaces. */
  readonly namespace?: string
  /** Absent: any object. */
  readonly name?: string
}

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const review = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) })

/**
 * Whether the API server allows the agent this access.
 *
 * @throws Error if the API server does not answer the question
 */
export async function isAllowed(ask: AskKubernetes, wanted: Wanted, signal: AbortSignal): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: wanted }
  }
  const { status, json } = await ask('POST', PATH, body, signal)
  const parsed = review.safeParse(json)
  if (!parsed.success) throw new Error(`status ${status}`)
  return parsed.data.status.allowed
}

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
    try {
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
    } catch (err) {
      return warn(
        NAMESPACES,
        `namespace ${namespace} cannot be looked at: ${wordsOf(err)}`,
        'correct what the message names, then try again'
      )
    }
  }
}
