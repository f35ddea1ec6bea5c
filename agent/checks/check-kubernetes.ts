import { z } from 'zod'
import { fail, ok, wordsOf, type Check } from './finding.ts'

/** One call to the API server: resolves with any status, rejects without an answer. `transport/connection.ts` implements it. */
export type AskKubernetes = (
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal
) => Promise<{ readonly status: number; readonly json: unknown }>

const version = z.looseObject({ gitVersion: z.string() })

/** The API server answers, and accepts the agent's credentials. */
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
          'check kubernetes.kubeconfig, the network and any NetworkPolicy'
        )
      ]
    }
  }
}

/** The access to ask about: `resourceAttributes` of a SelfSubjectAccessReview. */
export interface Wanted {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  /** All namespaces if absent. */
  readonly namespace?: string
  /** Any object if absent. */
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
