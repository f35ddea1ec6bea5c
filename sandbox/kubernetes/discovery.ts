import { RESOURCES, apiVersionOf, infoOf, resource, type ResourceName } from './resources.ts'

const NAMES = Object.keys(RESOURCES) as ResourceName[]

/** It is created and never stored. */
const REVIEW = resource('authorization.k8s.io', 'v1', 'SelfSubjectAccessReview')

const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']

const subresources = (name: ResourceName): object[] => {
  const info = infoOf(name)
  const { kind, namespaced } = info
  const part = (sub: string, differs: object = {}) => ({
    name: `${name}/${sub}`,
    singularName: '',
    namespaced,
    kind,
    verbs: ['get', 'patch', 'update'],
    ...differs
  })
  return [
    ...(info.status ? [part('status')] : []),
    ...(info.scale ? [part('scale', { group: 'autoscaling', version: 'v1', kind: 'Scale' })] : [])
  ]
}

const resourceList = (groupVersion: string): object => ({
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion,
  resources: [
    ...NAMES.filter(name => apiVersionOf(infoOf(name)) === groupVersion).flatMap(name => {
      const { kind, singular, shortNames, namespaced } = infoOf(name)
      return [
        { name, singularName: singular, namespaced, kind, verbs: VERBS, shortNames },
        ...subresources(name)
      ]
    }),
    ...[REVIEW]
      .filter(info => apiVersionOf(info) === groupVersion)
      .map(({ kind, singular }) => {
        return { name: `${singular}s`, singularName: singular, namespaced: false, kind, verbs: ['create'] }
      })
  ]
})

const GROUPS = [...new Set([...NAMES.map(infoOf), REVIEW].map(({ group }) => group))].filter(
  group => group !== ''
)

const groupOf = (name: string) => {
  const version = { groupVersion: `${name}/v1`, version: 'v1' }
  return { name, versions: [version], preferredVersion: version }
}

function versionInfo(version: string): object {
  const [major = '1', minor = '0'] = version.split('.')
  return { major, minor, gitVersion: `v${major}.${minor}.0`, platform: 'linux/amd64' }
}

/** Fixed answers: versions, health, discovery. Those that are `public` need no token. Undefined: another path. */
export function discover(
  path: string,
  version: string
): { readonly body: object | string; readonly public: boolean } | undefined {
  const said = (body: object | string, isPublic = false) => ({ body, public: isPublic })
  if (['/healthz', '/readyz', '/livez'].includes(path)) return said('ok', true)
  if (path === '/version') return said(versionInfo(version), true)
  if (path === '/api') return said({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] })
  if (path === '/apis') return said({ kind: 'APIGroupList', apiVersion: 'v1', groups: GROUPS.map(groupOf) })
  if (path === '/api/v1') return said(resourceList('v1'))
  const [, group, groupVersion] = /^\/apis\/([^/]+)(?:\/(v1))?$/.exec(path) ?? []
  if (group === undefined || !GROUPS.includes(group)) return undefined
  return said(
    groupVersion === undefined
      ? { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(group) }
      : resourceList(`${group}/v1`)
  )
}
