import type { ApiServer } from './api-server.ts'

interface ResourceList {
  readonly groupVersion: string
  readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[]
}

interface ObjectList {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly namespace?: string } }[]
}

/** Objects that the API server writes by itself at any time. */
const ITS_OWN =
  /^(v1\/(events|endpoints|componentstatuses)|events\.k8s\.io|coordination\.k8s\.io|metrics|discovery\.k8s\.io)/

/** Returns every object of every kind, as `apps/v1/deployments apisix/apisix-drain`. */
export async function everything(api: ApiServer): Promise<readonly string[]> {
  const { groups } = (await api.call('GET', '/apis')).json as {
    groups: { preferredVersion: { groupVersion: string } }[]
  }
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)]
  const found = await Promise.all(roots.map(root => under(api, root)))
  return found.flat().toSorted()
}

async function under(api: ApiServer, root: string): Promise<string[]> {
  const { groupVersion, resources } = (await api.call('GET', root)).json as ResourceList
  const listed = resources.filter(({ name, verbs }) => verbs.includes('list') && !name.includes('/'))
  const found = await Promise.all(
    listed
      .map(({ name }) => `${groupVersion}/${name}`)
      .filter(kind => !ITS_OWN.test(kind))
      .map(async kind => {
        const { status, json } = await api.call('GET', `${root}/${kind.slice(groupVersion.length + 1)}`)
        if (status !== 200) throw new Error(`${kind} cannot be listed: ${status}`)
        const { items } = json as ObjectList
        return items.map(
          ({ metadata: { namespace, name } }) => `${kind} ${namespace ? `${namespace}/` : ''}${name}`
        )
      })
  )
  return found.flat()
}
