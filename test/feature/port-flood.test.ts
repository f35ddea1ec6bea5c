import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse } from 'yaml'
import { webhookPolicy } from '../../agent/hook/listen.ts'

const CHILD = fileURLToPath(new URL('../build/ports-child.ts', import.meta.url))
const VALUES = fileURLToPath(new URL('../../charts/apisix-drain/values.yaml', import.meta.url))
const MI = 2 ** 20
const LIMIT =
  parseInt(
    (parse(readFileSync(VALUES, 'utf8')) as { resources: { limits: { memory: string } } }).resources.limits
      .memory
  ) * MI
/** The memory that the other parts of an agent need, as in values.yaml. */
const REST = 130 * MI
const COUNT = 1000
/** Many source addresses: the strictest limit is per address, and this test is about the other limits. */
const ATTACKERS = Array.from({ length: 20 }, (_, i) => `127.67.0.${i + 1}`)
const MANY = Buffer.alloc(MI, 'x')

interface Ports {
  readonly hooks: number
  readonly page: number
  readonly webhook: number
  readonly ca: string
  readonly servername: string
}
type Port = 'hooks' | 'page' | 'webhook'

describe('feature: a flood on each port', () => {
  let child: ChildProcess
  let ports: Ports
  const sockets = new Set<Socket>()
  before(async () => {
    child = fork(CHILD, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    ;[ports] = (await once(child, 'message')) as [Ports]
  })
  after(() => {
    for (const socket of sockets) socket.destroy()
    child.kill('SIGKILL')
  })

  /** Returns the highest memory so far of the process that serves the ports, in bytes. */
  const peak = () =>
    Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024

  const silent = async (port: Port, i: number) => {
    const socket = connect({
      port: ports[port],
      host: '127.0.0.1',
      localAddress: ATTACKERS[i % ATTACKERS.length]
    })
    socket.on('error', () => {})
    sockets.add(socket)
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
    return socket
  }
  /** Sends a request without an end: endless headers on the plain ports, an endless body on the port of the webhook. */
  const flooding = async (port: Port, i: number) => {
    const raw = await silent(port, i)
    if (port !== 'webhook') return raw.write(`GET / HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(2000)}`)
    const { ca, servername } = ports
    const socket = connectTls({ socket: raw, ca, servername })
    socket.on('error', () => {})
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')])
    socket.write('POST /v1/inject HTTP/1.1\r\nhost: x\r\ncontent-length: 4194304\r\n\r\n')
    for (let sent = 0; sent < 3; sent++) socket.write(MANY)
    return true
  }
  const all = async (one: (i: number) => Promise<unknown>) => {
    for (let i = 0; i < COUNT; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => one(i + j)))
  }

  const call = async (port: Port): Promise<number | undefined> => {
    const { ca, servername } = ports
    const body = JSON.stringify({ request: { uid: 'u', kind: { kind: 'Pod' }, object: {} } })
    const plain = { hooks: '/v1/prestop', page: '/metrics', webhook: '/v1/inject' }[port]
    const options = { host: '127.0.0.1', port: ports[port], path: plain, agent: false } as const
    const asked =
      port === 'webhook'
        ? httpsRequest({ ...options, method: 'POST', ca, servername })
        : httpRequest({ ...options, method: 'GET' })
    asked.end(port === 'webhook' ? body : undefined)
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    answer.resume()
    return answer.statusCode
  }
  /** Calls again if the time for the handshake was over: then the machine was too busy, and nobody took the caller's place. */
  const served = async (port: Port): Promise<number | undefined> => {
    const began = performance.now()
    return call(port).catch((err: unknown) => {
      if (performance.now() - began < webhookPolicy.handshakeMs) throw err
      return served(port)
    })
  }

  for (const port of ['hooks', 'page', 'webhook'] as const) {
    it(`of ${COUNT} silent and ${COUNT} flooding connections keeps no caller out, and stays in bounds: ${port}`, async () => {
      await all(i => silent(port, i))
      expect(await served(port), 'beside the silent ones').to.equal(200)
      const flood = all(i => flooding(port, i))
      for (let i = 0; i < 5; i++) expect(await served(port), 'in the flood').to.equal(200)
      await flood
      expect(await served(port), 'after the flood').to.equal(200)
      expect(peak()).to.be.below(LIMIT - REST)
      for (const socket of sockets) socket.destroy()
      sockets.clear()
      if (process.env['SHOW']) console.log(`${port}: at most ${Math.round(peak() / MI)} MiB`)
    })
  }
})
