import { expect } from 'chai'
import { startApisixProcess, type ApisixProcess } from '../../../../sandbox/apisix/process.ts'
import { httpNode, KEY, send } from './fixture.ts'

describe('sandbox/apisix as a process', () => {
  let apisix: ApisixProcess

  before(async () => {
    apisix = await startApisixProcess({
      proxyPort: 0,
      adminPort: 0,
      controlPort: 0,
      barrierPort: 0,
      barrierToken: 'token',
      adminKey: KEY,
      workers: 2,
      applyDelayMs: [0, 0]
    })
  })
  after(() => apisix.close())

  const admin = (method: string, path: string, body?: unknown) =>
    send(`${apisix.gateways[0]?.urls.admin}/apisix/admin/${path}`, {
      method,
      headers: { 'x-api-key': KEY },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })

  it('serves, and reports its requests', async () => {
    const node = await httpNode()
    await admin('PUT', 'upstreams/u', { nodes: { [node.address]: 1 } })
    await admin('PUT', 'routes/r', { uri: '/*', upstream_id: 'u' })
    expect((await send(`${apisix.gateways[0]?.urls.proxy}/x`)).body).to.equal(node.address)
    expect(await apisix.tell({ do: 'counters' })).to.deep.equal({
      requests: 1,
      byStatus: { 200: 1 },
      byNode: { [node.address]: 1 }
    })
    expect(((await apisix.tell({ do: 'facts' })) as unknown[]).length).to.equal(1)
    expect(((await apisix.tell({ do: 'facts' })) as unknown[]).length).to.equal(0)
    await node.close()
  })

  it('misbehaves on command, until the fault is lifted', async () => {
    await apisix.tell({ do: 'inject', api: 'admin', rule: { fault: { kind: 'status', status: 500 } } })
    expect((await admin('GET', 'routes')).status).to.equal(500)
    await apisix.tell({ do: 'clear-faults' })
    expect((await admin('GET', 'routes')).status).to.equal(200)
    await apisix.tell({ do: 'etcd', health: 'down' })
    expect((await admin('GET', 'routes')).status).to.equal(503)
    await apisix.tell({ do: 'etcd', health: 'up' })
  })

  it('reports the error in a command', async () => {
    const told = (command: Parameters<ApisixProcess['tell']>[0]) =>
      apisix.tell(command).catch((err: Error) => err.message)
    expect(await told({ do: 'freeze', worker: 9 })).to.contain('apisix-0 has no worker 9')
    expect(await told({ do: 'restart', gateway: 'nobody' })).to.contain('no gateway nobody')
  })

  it('reports the error in its options, and ends', async () => {
    const outcome = await startApisixProcess({ workers: 0 }).catch((err: Error) => err.message)
    expect(outcome).to.contain('exit status 2')
  })
})
