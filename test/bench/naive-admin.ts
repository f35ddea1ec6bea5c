import { Agent } from 'node:http'
import axios from 'axios'
import type { AdminAccess } from '../../sandbox/owner/put.ts'

export interface NaiveNode {
  readonly host: string
  readonly port: number
  readonly weight: number
}

const NEW_CONNECTION = new Agent({ keepAlive: false })

interface Listed {
  readonly list: readonly { readonly value: { readonly id: string; readonly nodes?: readonly NaiveNode[] } }[]
}

async function call(admin: AdminAccess, method: string, path: string, data?: unknown): Promise<unknown> {
  const { data: answer } = await axios.request<unknown>({
    url: `${admin.url}/apisix/admin/${path}`,
    method,
    data,
    headers: { 'x-api-key': admin.key },
    httpAgent: NEW_CONNECTION
  })
  return answer
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
