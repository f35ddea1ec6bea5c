import { connect, createServer, type AddressInfo } from 'node:net'

/** One address for all agents, like their Service: each connection goes to one of the running agents. */
export interface AgentService {
  readonly url: string
  close(): Promise<void>
}

/** @param ports where agents listen now; a connection is closed at once if no agent runs */
export async function startAgentService(ports: () => readonly number[]): Promise<AgentService> {
  const server = createServer(client => {
    const all = ports()
    const port = all[Math.floor(Math.random() * all.length)]
    client.on('error', () => {})
    if (port === undefined) {
      client.destroy()
      return
    }
    const agent = connect(port, '127.0.0.1')
    agent.on('error', () => client.destroy())
    agent.once('close', () => client.destroy())
    client.once('close', () => agent.destroy())
    client.pipe(agent).pipe(client)
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise(resolve => void server.close(() => resolve()))
  }
}
