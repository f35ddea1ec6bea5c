import { ApiError } from './errors.ts'
import type { KubeObject } from './objects.ts'
import { apiVersionOf, infoOf, type ResourceName } from './resources.ts'

/** Whole objects, or their metadata only (`as=PartialObjectMetadata`). */
export type Form = 'object' | 'metadata'

/** Reads the Accept header. 406 if the client only accepts forms that the stand-in does not have (protobuf). */
export function formOf(accept: string | undefined): Form {
  if (accept === undefined || accept.trim() === '') return 'object'
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim())
    if (!['application/json', 'application/*', '*/*'].includes(type)) continue
    const as = parameters.find(parameter => parameter.startsWith('as='))?.slice(3)
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') return 'metadata'
    // Skips a Table or an aggregated discovery document: the client's next media type is plain JSON.
    if (as === undefined) return 'object'
  }
  throw new ApiError(406, 'NotAcceptable', 'only the following media types are accepted: application/json')
}

/** The object in the form of the client, for a watch event or an answer. */
export const shaped = (object: KubeObject, form: Form): object =>
  form === 'object'
    ? object
    : { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata }

/** A list object; the items of a typed list have no kind of their own. */
export function listOf(
  resource: ResourceName,
  items: readonly KubeObject[],
  metadata: Readonly<Record<string, unknown>>,
  form: Form
): object {
  const info = infoOf(resource)
  return form === 'metadata'
    ? {
        kind: 'PartialObjectMetadataList',
        apiVersion: 'meta.k8s.io/v1',
        metadata,
        items: items.map(item => shaped(item, form))
      }
    : {
        kind: `${info.kind}List`,
        apiVersion: apiVersionOf(info),
        metadata,
        items: items.map(item => ({ ...item, kind: undefined, apiVersion: undefined }))
      }
}
