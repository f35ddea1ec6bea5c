import { createServer } from 'node:http'
import type { AdminAccess } from '../../sandbox/owner/put.ts'
import type { World } from '../../sandbox/world.ts'

type Upstream = { readonly id: string; readonly nodes?: readonly { readonly host: string }[] }

/**
 * A simple solution to compare with, at the agent's address: it answers the hook at the 200 of the Admin API, which proves nothing about the
 * gateways. It identifies a caller by its IP address.
 * @returns the function that ends it
 */
export async function startNaive({ agentUrl, gateways: { admin } }: World): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    removeNode(request.socket.remoteAddress ?? '', admin).then(
      () => response.end('{}'),
      (error: unknown) => response.writeHead(500).end(String(error))
    )
  })
  const { hostname, port } = new URL(agentUrl)
  await new Promise<void>(resolve => server.listen(Number(port), hostname, resolve))
  return () =>
    new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
}

/** Removes the pod's node from every upstream. */
async function removeNode(ip: string, admin: AdminAccess): Promise<void> {
  const { list } = (await call(admin, 'GET', 'upstreams')) as { list: { value: Upstream }[] }
  for (const { id, nodes = [] } of list.map(({ value }) => value)) {
    const kept = nodes.filter(({ host }) => host !== ip)
    if (kept.length < nodes.length && kept.length > 0)
      await call(admin, 'PATCH', `upstreams/${id}`, { nodes: kept })
  }
}

async function call(
  { url, key }: AdminAccess,
  method: string,
  path: string,
  data?: unknown
): Promise<unknown> {
  const answer = await fetch(`${url}/apisix/admin/${path}`, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json', connection: 'close' },
    ...(data !== undefined && { body: JSON.stringify(data) })
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`)
  return answer.json()
}
