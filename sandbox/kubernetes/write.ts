import { ApiError, badRequest, invalid, notFound } from './errors.ts'
import type { DeleteOptions } from './deletion.ts'
import type { Request, Response } from './listener.ts'
import type { Draft, KubeObject, OpaqueObject } from './objects.ts'
import { isFields, mergePatch } from './patch.ts'
import { strategicMerge } from './patch-strategic.ts'
import { infoOf } from './resources.ts'
import { bodyOf, respond } from './respond.ts'
import type { Store } from './store.ts'
import type { Target, Verb } from './target.ts'
import { readScale, writeScale } from './subresources.ts'

type Fields = Record<string, unknown>
type Body = Draft<OpaqueObject>

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw badRequest('the object provided is unrecognized: the body is not valid JSON')
  }
}

/** The body as an object. Its name and namespace, if given, must be those of the URL. */
function objectFor(target: Target, body: unknown): Body {
  if (!isFields(body)) throw badRequest('the body of the request is not an object')
  const info = infoOf(target.resource)
  const metadata = (isFields(body.metadata) ? body.metadata : {}) as Body['metadata']
  if (body.kind !== undefined && body.kind !== info.kind)
    throw badRequest(
      `${JSON.stringify(body.kind)} in version ${JSON.stringify(body.apiVersion)} cannot be handled as a ${info.kind}`
    )
  if (
    target.namespace !== undefined &&
    metadata.namespace !== undefined &&
    metadata.namespace !== target.namespace
  )
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  if (target.name !== undefined && metadata.name !== undefined && metadata.name !== target.name)
    throw badRequest(
      `the name of the object (${metadata.name}) does not match the name on the URL (${target.name})`
    )
  return {
    ...body,
    metadata: {
      ...metadata,
      ...(target.namespace === undefined ? {} : { namespace: target.namespace }),
      ...(target.name === undefined ? {} : { name: target.name })
    }
  }
}

const jsonOnly = (request: Request) => {
  const type = (request.headers['content-type'] ?? 'application/json').split(';')[0]!.trim()
  if (type !== 'application/json')
    throw new ApiError(
      415,
      'UnsupportedMediaType',
      `the body of the request was in an unknown format: ${type}`
    )
}

const PATCHES: Readonly<Record<string, (target: unknown, patch: unknown) => unknown>> = {
  'application/merge-patch+json': mergePatch,
  'application/strategic-merge-patch+json': strategicMerge
}

function patcher(request: Request): (target: unknown, patch: unknown) => unknown {
  const type = (request.headers['content-type'] ?? '').split(';')[0]!.trim()
  const patch = PATCHES[type]
  if (patch) return patch
  throw new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${Object.keys(PATCHES).join(', ')}`
  )
}

const put = (store: Store, target: Target, object: Body, dryRun: boolean): KubeObject => {
  const name = target.name ?? ''
  if (!object.metadata.resourceVersion && !infoOf(target.resource).unconditionalUpdate)
    throw invalid(
      `${infoOf(target.resource).kind} "${name}" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update`
    )
  return target.subresource === 'status'
    ? store.updateStatus(target.resource, object, { dryRun })
    : store.update(target.resource, object, { dryRun })
}

/** A uid in an update is a precondition (409). A patch with another uid would change it (422; seen at 1.36). */
function keepsUid({ resource, name }: Target, patched: Body, { metadata }: KubeObject): Body {
  const { uid = metadata.uid } = patched.metadata
  if (uid === metadata.uid) return patched
  throw invalid(
    `${infoOf(resource).kind} "${name}" is invalid: metadata.uid: Invalid value: "${uid}": field is immutable`
  )
}

function create(store: Store, target: Target, body: Body, dryRun: boolean): KubeObject {
  const info = infoOf(target.resource)
  const { namespace } = target
  if (info.namespaced && namespace === undefined) throw badRequest('namespace is required')
  if (namespace !== undefined && !store.get('namespaces', undefined, namespace))
    throw notFound('namespaces', namespace)
  // A client that creates an object cannot set its status.
  const { status: _, ...draft } = body as Body & { status?: unknown }
  return store.create(target.resource, info.status ? draft : body, { dryRun })
}

/** DeleteOptions from the body, or from the query if the body has none. */
function deleteOptions(text: string, query: URLSearchParams): DeleteOptions {
  const body = text.trim() === '' ? {} : parse(text)
  const given = (isFields(body) ? body : {}) as DeleteOptions & { dryRun?: unknown }
  const seconds = query.get('gracePeriodSeconds')
  return { ...(seconds === null ? {} : { gracePeriodSeconds: Number(seconds) }), ...given }
}

/** Everything that is not a plain read: the verbs that write, and the subresources. */
export async function write(
  { store }: { readonly store: Store },
  verb: Verb,
  target: Target,
  query: URLSearchParams,
  request: Request,
  response: Response
): Promise<void> {
  const { resource, namespace, name = '', subresource } = target
  const dryRun = query.get('dryRun') === 'All'
  const text = await bodyOf(request)

  if (subresource === 'scale' && infoOf(resource).scale) {
    if (verb === 'get') return respond(response, 200, readScale(store, target))
    const patch = verb === 'patch' ? patcher(request) : (_: unknown, body: unknown) => body
    return respond(
      response,
      200,
      writeScale(store, target, patch(readScale(store, target), parse(text)) as Fields)
    )
  }
  if (subresource !== undefined && !(subresource === 'status' && infoOf(resource).status))
    throw new ApiError(404, 'NotFound', 'the server could not find the requested resource')

  switch (verb) {
    case 'create':
      jsonOnly(request)
      return respond(response, 201, create(store, target, objectFor(target, parse(text)), dryRun))
    case 'update':
      jsonOnly(request)
      return respond(response, 200, put(store, target, objectFor(target, parse(text)), dryRun))
    case 'patch': {
      const patch = patcher(request)
      const current = store.get(resource, namespace, name)
      if (!current) throw notFound(resource, name)
      const patched = objectFor(target, patch(current, parse(text)))
      return respond(response, 200, put(store, target, keepsUid(target, patched, current), dryRun))
    }
    case 'delete': {
      const last = store.delete(resource, namespace, name, { ...deleteOptions(text, query), dryRun })
      return respond(response, 200, last)
    }
    case 'get':
    case 'list':
    case 'watch':
      throw new ApiError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource'
      )
  }
}
