import { z } from 'zod'
import type { AskKubernetes } from './kubernetes.ts'

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
