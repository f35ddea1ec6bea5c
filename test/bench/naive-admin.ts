import type { AdminAccess } from '../../sandbox/owner/put.ts'

export interface NaiveNode {
  readonly host: string
  readonly port: number
  readonly weight: number
}

interface Listed {
  readonly list: readonly { readonly value: { readonly id: string; readonly nodes?: readonly NaiveNode[] } }[]
}

async function call(admin: AdminAccess, method: string, path: string, data?: unknown): Promise<unknown> {
  const answer = await fetch(`${admin.url}/apisix/admin/${path}`, {
    method,
    headers: { 'x-api-key': admin.key, 'content-type': 'application/json', connection: 'close' },
    ...(data !== undefined && { body: JSON.stringify(data) })
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`)
  return answer.json()
}

/** Returns every upstream that lists nodes. @throws Error on any status but 2xx */
export async function listNodes(
  admin: AdminAccess
): Promise<{ readonly id: string; readonly nodes: readonly NaiveNode[] }[]> {
  const { list } = (await call(admin, 'GET', 'upstreams')) as Listed
  return list.map(({ value: { id, nodes = [] } }) => ({ id, nodes }))
}

/** @throws Error on any status but 2xx */
export async function patchNodes(admin: AdminAccess, id: string, nodes: readonly NaiveNode[]): Promise<void> {
  await call(admin, 'PATCH', `upstreams/${id}`, { nodes })
}
