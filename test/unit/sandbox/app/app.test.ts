import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { expect } from 'chai'
import { WebSocket } from 'ws'
import type { Arrival } from '../../../../sandbox/app/report.ts'
import { createApp, type App } from '../../../../sandbox/app/server.ts'

async function ask(port: number, path: string): Promise<{ status: number; body: string }> {
  const call = get({ host: '127.0.0.1', port, path })
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

  it('finishes accepted requests, and refuses all others from the moment of TERM', async () => {
    const reached = once(app.server, 'request')
    const slow = ask(port, '/?ms=300')
    await reached
    const ended = app.terminate()
    expect(await failure(ask(port, '/'))).to.equal('ECONNREFUSED')
    expect((await slow).status).to.equal(200)
    await ended
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
})
