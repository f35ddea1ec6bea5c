import { createServer } from 'node:http'
import { expect } from 'chai'
import { readSecret } from '../../../../agent/hook/barrier-entries.ts'
import { startApisix } from '../../../../sandbox/apisix/apisix.ts'
import { eventually, httpNode, KEY, opened, send, testGateway, TOKEN } from './fixture.ts'

describe('sandbox/apisix gateway', () => {
  const all = opened()
  afterEach(() => all.close())

  it('loses its entries in a restart, and becomes another instance on the same addresses', async () => {
    const apisix = all.add(await testGateway())
    const node = all.add(await httpNode())
    await apisix.route({ [node.address]: 1 })
    await apisix.barrier('PUT', 'entries', {
      entries: [{ uid: 'a', ip: '127.0.0.1', state: 'sealed', ttl: 60 }]
    })
    const before = apisix.gateway.barrier?.instance
    const { urls } = apisix.gateway
    await apisix.gateway.stop()
    expect(await send(urls.proxy).catch((err: NodeJS.ErrnoException) => err.code)).to.equal('ECONNREFUSED')
    await apisix.gateway.start()
    expect(apisix.gateway.urls).to.deep.equal(urls)
    const { body } = await apisix.barrier('GET', 'state')
    expect(body['entries']).to.deep.equal([])
    expect(body['instance']).to.not.equal(before)
    expect((await send(urls.proxy)).status).to.equal(200)
  })

  it('goes on serving while it is cut off, and answers again afterwards', async () => {
    const apisix = all.add(await testGateway())
    const node = all.add(await httpNode())
    await apisix.route({ [node.address]: 1 })
    await apisix.gateway.partition({ control: 'silent', barrier: 'refused', admin: 'silent' })
    const get = (url: string, ms = 20_000) =>
      fetch(url, { signal: AbortSignal.timeout(ms) }).then(
        answer => answer.status,
        (err: Error) => (err.name === 'TimeoutError' ? 'silent' : 'refused')
      )
    const { urls } = apisix.gateway
    expect([
      await get(`${urls.control}/v1/routes`, 60),
      await get(`${urls.barrier}/v1/barrier/ready`),
      await get(`${urls.admin}/apisix/admin/routes`, 60),
      await get(urls.proxy)
    ]).to.deep.equal(['silent', 'refused', 'silent', 200])
    await apisix.gateway.partition({})
    expect([
      await get(`${urls.control}/v1/routes`),
      await get(`${urls.barrier}/v1/barrier/ready`)
    ]).to.deep.equal([200, 200])
  })

  it('fetches the current entries at its start, and is ready only then', async () => {
    let release = (): void => {}
    const tokens: (string | undefined)[] = []
    const agent = createServer((incoming, response) => {
      tokens.push(incoming.headers.authorization)
      const entries = [{ uid: 'a', ip: '127.0.0.1', state: 'draining', ttl: 60 }]
      release = () => response.end(JSON.stringify({ entries }))
    })
    await new Promise<void>(resolve => agent.listen(0, '127.0.0.1', resolve))
    all.add({ close: () => agent.close() })
    const { port } = agent.address() as { port: number }
    const apisix = all.add(
      await testGateway({ fetchEntries: { url: `http://127.0.0.1:${port}`, timeoutMs: 5000 } })
    )
    const ready = () => apisix.barrier('GET', 'ready')
    await eventually(() => tokens.length === 1)
    expect((await ready()).status).to.equal(503)
    release()
    await eventually(async () => (await ready()).status === 200)
    expect(apisix.gateway.barrier?.entries.look('127.0.0.1', 80)).to.equal('draining')
    expect(tokens).to.deep.equal([`Bearer ${readSecret(TOKEN)}`])
  })

  it('gives up fetching after the time limit, and serves', async () => {
    const apisix = all.add(await testGateway({ fetchEntries: { url: 'http://127.0.0.1:1', timeoutMs: 50 } }))
    await eventually(async () => (await apisix.barrier('GET', 'ready')).status === 200)
    const { body } = await apisix.barrier('GET', 'ready')
    expect(body['why']).to.contain('failed: failed to connect: ECONNREFUSED')
  })

  it('runs several gateways on one store, each on its own address with the same ports, and cleans up', async () => {
    const options = { proxyPort: 21_080, controlPort: 21_090, adminPort: 21_180, workers: 2, adminKey: KEY }
    const hosts = ['127.93.17.1', '127.93.17.2']
    const apisix = await startApisix({ ...options, hosts })
    const node = all.add(await httpNode())
    try {
      await apisix.add('127.93.17.3')
      const [first] = apisix.gateways
      for (const [path, body] of [
        ['upstreams/u', { nodes: { [node.address]: 1 } }],
        ['routes/r', { uri: '/*', upstream_id: 'u' }]
      ] as const)
        await send(`${first?.urls.admin}/apisix/admin/${path}`, {
          method: 'PUT',
          headers: { 'x-api-key': KEY },
          body: JSON.stringify(body)
        })
      await eventually(() =>
        apisix.gateways.every(({ workers }) => workers.every(({ config }) => config.revision === 2))
      )
      for (const { urls } of apisix.gateways) expect((await send(urls.proxy)).body).to.equal(node.address)
      expect(apisix.gateways.map(({ urls }) => urls.proxy)).to.include('http://127.93.17.3:21080')
    } finally {
      await apisix.close()
    }
    // After the close, all addresses must be free at once, and the keep-alive connections to the node closed.
    const again = await startApisix({ ...options, hosts })
    await again.close()
    await eventually(
      () => new Promise<boolean>(resolve => node.server.getConnections((_, count) => resolve(count === 0)))
    )
  })

  it('leaves nothing open when an address is taken', async () => {
    const taken = all.add(await testGateway())
    const port = Number(new URL(taken.gateway.urls.control).port)
    const outcome = await testGateway({ controlPort: port }).catch((err: NodeJS.ErrnoException) => err.code)
    expect(outcome).to.equal('EADDRINUSE')
  })
})
