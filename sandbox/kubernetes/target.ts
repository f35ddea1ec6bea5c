import { infoOf, isResource, type ResourceName } from './resources.ts'

/** The target of a URL: a collection or an object of a stored resource, perhaps with a subresource. */
export interface Target {
  readonly resource: ResourceName
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
}

/** `/api/v1/...` and `/apis/<group>/<version>/...`; undefined for any other path or resource. */
export function parseTarget(pathname: string): Target | undefined {
  const parts = pathname.split('/').filter(Boolean).map(decodeURIComponent)
  const core = parts[0] === 'api'
  if (!core && parts[0] !== 'apis') return undefined
  const [group, version] = core ? ['', parts[1]] : [parts[1], parts[2]]
  const rest = parts.slice(core ? 2 : 3)
  const scoped = rest[0] === 'namespaces' && rest[2] !== undefined && isResource(rest[2])
  const [plural = '', name, subresource] = scoped ? rest.slice(2) : rest
  if (!isResource(plural)) return undefined
  const info = infoOf(plural)
  if (info.group !== group || info.version !== version) return undefined
  if (scoped !== info.namespaced && (scoped || name !== undefined)) return undefined
  return { resource: plural, namespace: scoped ? rest[1] : undefined, name, subresource }
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** The RBAC verb of a request. */
export function verbOf(method: string, target: Pick<Target, 'name'>, watch: boolean): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return watch ? 'watch' : target.name === undefined ? 'list' : 'get'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return target.name === undefined ? undefined : 'delete'
    default:
      return undefined
  }
}
