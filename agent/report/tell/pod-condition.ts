import type { Millis, PodFact } from '../../rules/drain/facts.ts'

/** Merges a patch into an object at the API server. Resolves with any status; rejects if no answer comes in time. */
export type Patch = (path: string, body: unknown, signal: AbortSignal) => Promise<{ readonly status: number }>

export interface PodCondition {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

/**
 * The answers to a patch with a uid if the pod is gone, or if another pod has its name now. kube-apiserver 1.36 rejects a changed uid as
 * invalid (422).
 */
export const ANOTHERS: ReadonlySet<number> = new Set([404, 409, 422])

/** The longest message to put into a pod's status, in characters. */
const LONGEST_MESSAGE = 1000

/**
 * Writes a condition into the status of a pod. `false`: the pod is gone.
 *
 * @throws Error when the API server refuses it, or does not answer
 */
export async function writeCondition(
  patch: Patch,
  { namespace, name, uid }: Pick<PodFact, 'namespace' | 'name' | 'uid'>,
  condition: PodCondition,
  at: Millis,
  signal: AbortSignal
): Promise<boolean> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/status`
  const { status } = await patch(path, patchOf(uid, condition, at), signal)
  if (status !== 200 && !ANOTHERS.has(status)) throw new Error(`status ${status}`)
  return status === 200
}

/** The body of a strategic merge. It merges conditions by type, and the uid protects another pod of the same name. */
export const patchOf = (uid: string, condition: PodCondition, at: Millis) => ({
  metadata: { uid },
  status: {
    conditions: [
      {
        ...condition,
        message: condition.message.slice(0, LONGEST_MESSAGE),
        lastTransitionTime: new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')
      }
    ]
  }
})
