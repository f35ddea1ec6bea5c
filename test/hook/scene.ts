/**
 * Runs in a separate network namespace without other connections: an agent that answers at once, a server, and clients that
 * connect every `everyMs` for `forMs`. Runs the hook with a quiet window and prints the result.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { runHook } from './run.ts'
import { answers, startStub } from './stub.ts'

const [everyMs = 0, forMs = 0, ...args] = process.argv
  .slice(2)
  .map((text, i) => (i < 2 ? Number(text) : text))

const agent = await startStub([answers])
const server = createServer(socket => socket.on('error', () => {}).end('bye')).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

let lastAt = 0
const began = performance.now()
const visits = setInterval(() => {
  if (performance.now() - began > Number(forMs)) return clearInterval(visits)
  lastAt = performance.now()
  connect(port, '127.0.0.1')
    .on('error', () => {})
    .resume()
}, Number(everyMs))
const { code, stderr } = await runHook(['--url', agent.url, ...args.map(String)])
const endedAt = performance.now()
clearInterval(visits)
console.log(JSON.stringify({ code, stderr, afterLastMs: endedAt - lastAt, ms: endedAt - began }))
server.close()
await agent.close()
