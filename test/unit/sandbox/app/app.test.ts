import { spawn } from 'node:child_process'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { WebSocket } from 'ws'
import type { AppMessage, Arrival } from '../../../../sandbox/app/report.ts'
import { createApp, type App } from '../../../../sandbox/app/server.ts'
import { ranMs } from '../../../build/apisix.ts'

async function ask(port: number, path: string, agent?: Agent): Promise<{ status: number; body: string }> {
  const call = get({ host: '127.0.0.1', port, path, agent })
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of response) body += String(chunk)
  return { status: response.statusCode ?? 0, body }
}

const failure = async (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    (error: NodeJS.ErrnoException) => error.code
  )

async function raw(port: number, app: App): Promise<Socket> {
  const accepted = once(app.server, 'connection')
  const socket = connect(port, '127.0.0.1')
  await accepted
  return socket
}

describe('sandbox/app: the worst-case app', () => {
  let app: App
  let port: number
  let arrivals: Arrival[]
  beforeEach(async () => {
    arrivals = []
    app = createApp('web-1', arrival => arrivals.push(arrival))
    app.server.listen(0, '127.0.0.1')
    await once(app.server, 'listening')
    port = (app.server.address() as AddressInfo).port
  })
  afterEach(() => {
    app.server.close()
    app.server.closeAllConnections()
  })

  it('answers with its name, and reads an upload to its end', async () => {
    expect(JSON.parse((await ask(port, '/')).body)).to.include({ pod: 'web-1', terminating: false })
    const socket = await raw(port, app)
    socket.end('POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 5\r\n\r\nabcde')
    let answer = ''
    for await (const chunk of socket) answer += String(chunk)
    expect(answer).to.contain('"received":5,')
  })

  it('finishes accepted requests, and refuses all others from the moment of TERM', async () => {
    const reached = once(app.server, 'request')
    const slow = ask(port, '/?ms=300')
    await reached
    const ended = app.terminate()
    expect(await failure(ask(port, '/'))).to.equal('ECONNREFUSED')
    expect((await slow).status).to.equal(200)
    await ended
    expect(app.counts).to.deep.equal({ served: 1, afterTerm: 0 })
  })

  it('drops accepted requests at TERM if it is asked to, and closes websockets with 1001', async () => {
    app.server.close()
    app = createApp('web-1', () => {}, 'drop')
    app.server.listen(0, '127.0.0.1')
    await once(app.server, 'listening')
    port = (app.server.address() as AddressInfo).port
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`)
    await once(socket, 'open')
    const reached = once(app.server, 'request')
    const slow = failure(ask(port, '/?ms=60000'))
    await reached
    const closed = once(socket, 'close')
    await app.terminate()
    expect(await slow).to.equal('ECONNRESET')
    expect((await closed)[0]).to.equal(1001)
  })

  it('closes idle keep-alive connections at TERM', async () => {
    const agent = new Agent({ keepAlive: true })
    await ask(port, '/', agent)
    const [sockets] = Object.values(agent.freeSockets)
    const closed = once(sockets![0]!, 'close')
    await app.terminate()
    await closed
    agent.destroy()
  })

  it('reports requests that came after TERM, on connections accepted before', async () => {
    const socket = await raw(port, app)
    const ended = app.terminate()
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    let answer = ''
    for await (const chunk of socket) answer += String(chunk)
    expect(answer).to.contain('200 OK').and.to.contain('"terminating":true')
    expect(answer.toLowerCase()).to.contain('connection: close')
    await ended
    expect(arrivals).to.have.length(1)
    expect(arrivals[0]).to.include({ method: 'GET', afterTerm: true })
    expect(app.counts).to.deep.equal({ served: 1, afterTerm: 1 })
  })

  it('is not delayed by an idle connection', async () => {
    const socket = await raw(port, app)
    const before = performance.now()
    await app.terminate()
    expect(ranMs(before)).to.be.below(3000)
    socket.destroy()
  })
})

describe('sandbox/app: as a process', () => {
  const main = fileURLToPath(new URL('../../../../sandbox/app/main.ts', import.meta.url))

  it('is ready, reports its requests, and exits 0 at SIGTERM', async () => {
    const env = { ...process.env, POD_NAME: 'web-7', POD_IP: '127.211.7.7', PORT: '18080' }
    const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const told: AppMessage[] = []
    child.on('message', message => told.push(message as AppMessage))
    const [first] = (await once(child, 'message')) as [AppMessage]
    expect(first.type).to.equal('ready')
    const call = get('http://127.211.7.7:18080/')
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'end')
    const gone = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
    child.kill('SIGTERM')
    const [[code]] = await gone
    expect(code).to.equal(0)
    expect(told.map(({ type }) => type)).to.have.members(['ready', 'term', 'arrivals', 'end'])
    expect(told.at(-1)).to.deep.equal({ type: 'end', served: 1, afterTerm: 0 })
  })

  it('does not outlive the sandbox', async () => {
    const env = { ...process.env, POD_IP: '127.211.7.8', PORT: '18080' }
    const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    await once(child, 'message')
    child.disconnect()
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).to.equal(1)
  })
})
