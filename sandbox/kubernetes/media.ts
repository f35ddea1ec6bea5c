import { ApiError } from './errors.ts'
import type { KubeObject } from './objects.ts'
import { apiVersionOf, infoOf, type ResourceName } from './resources.ts'

/** @throws ApiError 406 if the client only accepts forms that the stand-in does not have: protobuf, or metadata alone */
export function mustAcceptJson(accept = '*/*'): void {
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim())
    if (!['application/json', 'application/*', '*/*', ''].includes(type)) continue
    // Skips a Table or an aggregated discovery document: the client's next media type is plain JSON.
    if (!parameters.some(parameter => parameter.startsWith('as='))) return
  }
  throw new ApiError(406, 'NotAcceptable', 'only the following media types are accepted: application/json')
}

/** A list object; the items of a typed list have no kind of their own. */
export function listOf(
  resource: ResourceName,
  items: readonly KubeObject[],
  metadata: Readonly<Record<string, unknown>>
): object {
  const info = infoOf(resource)
  return {
    kind: `${info.kind}List`,
    apiVersion: apiVersionOf(info),
    metadata,
    items: items.map(item => ({ ...item, kind: undefined, apiVersion: undefined }))
  }
}
