import { expect } from 'chai'
import { startGateways, type Gateways } from '../../../../sandbox/gateways/start.ts'
import { until } from '../../../build/apisix.ts'
import { httpNode, send, type TestNode } from '../apisix/fixture.ts'

const KEY = 'the-key-of-this-test'

describe('sandbox/gateways: one that is behind', () => {
  let gateways: Gateways | undefined
  let node: TestNode | undefined
  afterEach(async () => {
    await gateways?.close()
    await node?.close()
  })

  it('applies writes late, and the others do not', async () => {
    node = await httpNode()
    const options = { proxyPort: 29_080, controlPort: 29_090, adminPort: 29_180, adminKey: KEY, workers: 2 }
    // The delay is so long that, almost certainly, no worker of that gateway applies a write before the end of this test.
    gateways = await startGateways({ ...options, hosts: ['127.9.1.1', '127.9.1.2'], behindMs: 86_400_000 })
    const put = (path: string, body: unknown) =>
      send(`${gateways!.admin.url}/apisix/admin/${path}`, {
        method: 'PUT',
        headers: { 'x-api-key': KEY },
        body: JSON.stringify(body)
      })
    await put('upstreams/u', { type: 'roundrobin', nodes: { [node.address]: 1 } })
    await put('routes/r', { uri: '/*', upstream_id: 'u' })
    const [quick, late] = gateways.gateways.map(({ proxy }) => `${proxy}/`)
    await until('the quick one serves', async () => (await send(quick!)).status === 200)
    expect((await send(late!)).status).to.equal(404)
  })
})
