import { z } from 'zod'
import { fail, ok, wordsOf, type Check } from './finding.ts'

/** One call to the API server: any status is an answer, rejects when there is none. `transport/connection.ts` has it. */
export type AskKubernetes = (
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal
) => Promise<{ readonly status: number; readonly json: unknown }>

const version = z.looseObject({ gitVersion: z.string() })

/** The API server answers us, and takes our credentials. */
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

/** What is asked about: `resourceAttributes` of a SelfSubjectAccessReview. */
export interface Wanted {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  /** Everywhere, where it is left out. */
  readonly namespace?: string
  /** Any object, where it is left out. */
  readonly name?: string
}

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const review = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) })

/**
 * Whether we may, as the API server says.
 *
 * @throws Error when it does not say
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
