import { fieldsOf, textOf } from '../../base/read.ts'
import { inject } from './inject.ts'
import type { InjectSettings } from './settings.ts'

/** The answer to an AdmissionReview: always allowed, with a patch if the pod gets the hook, and a warning if it is beyond the limits. */
interface Review {
  readonly apiVersion: 'admission.k8s.io/v1'
  readonly kind: 'AdmissionReview'
  readonly response: {
    readonly uid: string
    readonly allowed: true
    readonly patchType?: 'JSONPatch'
    /** Base64. */
    readonly patch?: string
    /** `kubectl` prints them. */
    readonly warnings?: readonly string[]
  }
}

/** The answer to an AdmissionReview; `undefined` if `asked` is not the review of a pod. */
export function review(asked: unknown, settings: InjectSettings): Review | undefined {
  const request = fieldsOf(fieldsOf(asked)['request'])
  const uid = textOf(request['uid'])
  if (uid === undefined || fieldsOf(request['kind'])['kind'] !== 'Pod') return undefined
  const { operations, warning } = inject(request['object'], settings)
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64')
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: true,
      ...(operations.length > 0 && { patchType: 'JSONPatch', patch }),
      ...(warning !== undefined && { warnings: [warning] })
    }
  }
}
