import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { runHook } from '../../../../sandbox/kubelet/hook.ts'
import { harness, ranBetween, type Harness } from './harness.ts'

const context = {
  spec: { name: 'main', ports: [{ name: 'http', containerPort: 1 }] },
  env: { PATH: process.env.PATH ?? '' },
  ip: '127.0.0.1',
  signal: new AbortController().signal
}

describe('sandbox/kubelet: hooks', () => {
  let server: Server
  let port: number
  const seen: { path: string | undefined; from: string | undefined; agent: string | undefined }[] = []

  before(done => {
    server = createServer((request, response) => {
      seen.push({
        path: request.url,
        from: request.socket.remoteAddress,
        agent: request.headers['user-agent']
      })
      response.writeHead(request.url === '/broken' ? 500 : 200).end('hello')
    })
    server.listen(0, '127.0.0.1', () => {
      port = (server.address() as AddressInfo).port
      done()
    })
  })
  after(done => void server.close(done))
  beforeEach(() => void seen.splice(0))

  it('httpGet ignores the status: 500 is a success', async () => {
    const record = await runHook({ httpGet: { port, path: '/broken' } }, context)
    expect(record).to.include({ kind: 'httpGet', ok: true, output: 'hello' })
    expect(seen[0]).to.include({ path: '/broken' })
    expect(seen[0]!.agent).to.match(/^kube-lifecycle\//)
  })

  it('httpGet finds a port by its name', async () => {
    const spec = { name: 'main', ports: [{ name: 'http', containerPort: port }] }
    expect(await runHook({ httpGet: { port: 'http', path: '/x' } }, { ...context, spec })).to.include({
      ok: true
    })
    const unknown = await runHook({ httpGet: { port: 'grpc' } }, { ...context, spec })
    expect(unknown.ok).to.equal(false)
    expect(unknown.output).to.contain('no port named grpc')
  })

  it('httpGet fails on a transport error', async () => {
    const record = await runHook({ httpGet: { host: '127.0.0.1', port: 1 } }, context)
    expect(record.ok).to.equal(false)
    expect(record.output).to.contain('ECONNREFUSED')
  })

  it('sleep sleeps', async () => {
    const record = await runHook({ sleep: { seconds: 0.2 } }, context)
    expect(record).to.include({ kind: 'sleep', ok: true })
    expect(record.endedAt - record.startedAt).to.be.at.least(195)
    expect(ranBetween(record.startedAt, record.endedAt)).to.be.below(1500)
  })

  it('exec gets the environment of the container and nothing else', async () => {
    process.env.SANDBOX_SECRET = 'x'
    const command = ['sh', '-c', 'echo "[$SANDBOX_SECRET$HOME]"']
    const record = await runHook({ exec: { command } }, context)
    delete process.env.SANDBOX_SECRET
    expect(record.output).to.equal('[]\n')
  })

  it('exec expands no variables by itself', async () => {
    const record = await runHook({ exec: { command: ['echo', '$(PATH)', '$PATH'] } }, context)
    expect(record.output).to.equal('$(PATH) $PATH\n')
  })

  describe('in a pod', () => {
    let world: Harness
    beforeEach(() => (world = harness()))
    afterEach(() => world.close())

    it('curl calls from the address of its pod', async () => {
      const command = ['sh', '-c', `curl -fsS -m 5 --interface $POD_IP http://127.0.0.1:${port}/v1/prestop`]
      const env = [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }]
      const { pod, record } = await world.pod('web-1', { preStop: { exec: { command } }, env })
      await world.end(pod)
      expect(record.hooks[0]).to.include({ ok: true, output: 'hello' })
      expect(seen).to.have.length(1)
      expect(seen[0]!.from).to.equal(record.ip)
    })
  })
})
