import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

/** Ports that were free a moment ago, for programs that cannot pick a port by themselves and report it. */
export async function freePorts<Name extends string>(
  ...names: readonly Name[]
): Promise<Record<Name, number>> {
  const servers = names.map(() => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map(server => once(server, 'listening')))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => once(server.close(), 'close')))
  return Object.fromEntries(names.map((name, i) => [name, ports[i]])) as Record<Name, number>
}
