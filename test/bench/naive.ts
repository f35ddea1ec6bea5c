import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { listNodes, patchNodes } from './naive-admin.ts'
import type { World } from '../../sandbox/world.ts'

/** Simple solutions to compare with. Each answers the hook after a sign that proves nothing. */
export type NaiveWay = 'admin-answered' | 'admin-and-50-ms' | 'slice-polled'

const POLL_MS = 100

/**
 * A server for preStop hooks at the agent's address. It identifies a caller by its IP address.
 * @returns the function that ends it
 */
export async function startNaive(way: NaiveWay, world: World): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    WAYS[way](request.socket.remoteAddress ?? '', world).then(
      () => response.end('{}'),
      (error: unknown) => response.writeHead(500).end(String(error))
    )
  })
  const { hostname, port } = new URL(world.agentUrl)
  await new Promise<void>(resolve => server.listen(Number(port), hostname, resolve))
  return () =>
    new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
}

const WAYS: Record<NaiveWay, (ip: string, world: World) => Promise<void>> = {
  'admin-answered': removeNode,
  async 'admin-and-50-ms'(ip, world) {
    await removeNode(ip, world)
    await wait(50)
  },
  async 'slice-polled'(ip, { kubernetes: { store } }) {
    const serves = () =>
      store
        .list('endpointslices')
        .flatMap(({ endpoints }) => endpoints ?? [])
        .some(({ addresses, conditions }) => addresses.includes(ip) && conditions?.ready === true)
    while (serves()) await wait(POLL_MS)
  }
}

/** Removes the pod's node from every upstream. Resolves at the 200 of the Admin API, without a check of the gateways. */
async function removeNode(ip: string, { gateways: { admin } }: World): Promise<void> {
  for (const { id, nodes } of await listNodes(admin)) {
    const kept = nodes.filter(({ host }) => host !== ip)
    if (kept.length < nodes.length && kept.length > 0) await patchNodes(admin, id, kept)
  }
}
