import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { expect } from 'chai'
import { standaloneTarget } from '../../sandbox/owner/adc-target.ts'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import type { TestPod } from '../build/pods.ts'
import { PORTS, type Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** Returns a function that puts documents like their owner, to all gateways or to some of them. */
function ownerOf(rig: Rig) {
  const targets = rig.gateways.map(({ urls }) => {
    const access = { url: urls.admin ?? '', key: rig.barrierToken }
    return standaloneTarget(() => [access])
  })
  return async (pods: readonly TestPod[], gateways = targets.length) => {
    const objects = {
      upstreams: [{ id: 'web', type: 'roundrobin', nodes: arrayOf(pods) }],
      services: [],
      routes: [{ id: 'all', uri: '/*', upstream_id: 'web' }]
    }
    await Promise.all(targets.slice(0, gateways).map(target => target(objects)))
  }
}

const KEY = 'upstreams/web'

async function known(rig: Rig, count: number): Promise<void> {
  await until('the agent knows the documents', () => rig.agent.nodes(KEY) === count)
  await until('every worker has taken them in', () =>
    rig.gateways.every(({ workers }) =>
      workers.every(({ config }) => config.get('upstreams', 'web')?.value['nodes'] !== undefined)
    )
  )
}

/** Makes two pods, and lists them in the documents of all gateways. */
async function documented(rig: Rig) {
  const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
  const put = ownerOf(rig)
  await put([old, fresh])
  await known(rig, 2)
  return { old, fresh, put }
}

/** Starts a listener at each port that the agent may call at a gateway. The result: the headers of the requests at each port. */
async function listenAt(host: string, ports: Readonly<Record<string, number>>) {
  const asked = Object.fromEntries(Object.keys(ports).map(name => [name, [] as IncomingHttpHeaders[]]))
  const servers = Object.entries(ports).map(([name, port]) =>
    createServer(({ headers }, response) => {
      asked[name]?.push(headers)
      response.end('{}')
    }).listen(port, host)
  )
  await Promise.all(servers.map(server => once(server, 'listening')))
  return { asked, close: () => servers.forEach(server => server.close().closeAllConnections()) }
}

describe('feature: API-driven standalone', () => {
  const test = sideBySide({ standalone: true, gateways: 2 })

  test('the Admin API key goes to the configured Admin API, and to nothing that looks like a gateway', async start => {
    const rig = await start()
    const host = rig.address()
    const { asked, close } = await listenAt(host, { control: PORTS.control, admin: PORTS.admin })
    try {
      rig.showGateway('stranger', host)
      const { fresh, put } = await documented(rig)
      await until('the agent calls it as a gateway', () => (asked['control']?.length ?? 0) > 0)
      await put([fresh])
      await known(rig, 1)
      expect(asked['admin']).to.deep.equal([])
      for (const headers of asked['control'] ?? []) expect(headers).not.to.have.property('x-api-key')
    } finally {
      close()
    }
  })

  test('the agent detects the mode, and the barrier proves a drain without a write', async start => {
    const rig = await start({
      barrier: true,
      config: { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' }
    })
    const { old, fresh } = await documented(rig)
    await Promise.all([rig.serve(old), rig.serve(fresh)])
    const load = rig.load(50)
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(body.holders).to.deep.include({
      key: KEY,
      state: 'foreign',
      why: 'API-driven standalone: every gateway has its own document, and none of them is written'
    })
    await load.stop()
    expect(rig.writes).to.deep.equal([])
    expect(rig.agent.lines.some(line => line['mode'] === 'standalone')).to.equal(true)
    const { agent } = await rig.agent.state()
    expect(agent.apisix).to.deep.equal({ mode: 'standalone' })
  })

  test('two APISIX with configurations of their own under one selector: only the other one lists the pod (A28)', async start => {
    const rig = await start({ barrier: true })
    const { old, fresh, put } = await documented(rig)
    await put([fresh], 1)
    await known(rig, 1)
    await Promise.all([rig.serve(old), rig.serve(fresh)])
    const load = rig.load(50)
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(rig.gateways.map(({ barrier }) => barrier?.entries.look(old.ip, old.port))).to.deep.equal([
      'sealed',
      'sealed'
    ])
    expect((await load.stop()).failures).to.deep.equal([])
    expect(rig.violations()).to.deep.equal([])
  })

  test('an entry lasts while the workers of one gateway would choose the pod, although the agent reads another document', async start => {
    const rig = await start({ barrier: true, loop: { lingerMs: 100 }, config: { APISIX_BARRIER_TTL: '6s' } })
    const { old, fresh, put } = await documented(rig)
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await put([fresh], 1)
    rig.gone(old)
    const held = () => rig.gateways.map(({ barrier }) => barrier?.entries.look(old.ip, old.port))
    const expires = (): number =>
      Math.min(...rig.gateways.map(({ barrier }) => barrier?.entries.ofUid(old.uid)[0]?.expires ?? 0))
    // The first renewal brings the words after the change, the second shows what the agent made of them.
    for (const which of ['first', 'second']) {
      const before = expires()
      await until(`the ${which} renewal`, () => expires() > before)
    }
    expect(held()).to.deep.equal(['sealed', 'sealed'])
    await put([fresh])
    await until('both entries are removed', () =>
      rig.gateways.every(({ barrier }) => barrier?.entries.size === 0)
    )
  })

  test('without the plugin every gateway is observed, until the owner has updated the last one', async start => {
    const rig = await start()
    const { old, fresh, put } = await documented(rig)
    let answered = false
    const reply = rig.drain(old).finally(() => (answered = true))
    await put([fresh], 1)
    await until('the first gateway has let go', () =>
      (rig.gateways[0]?.workers ?? []).every(
        ({ config }) =>
          (config.get('upstreams', 'web')?.value['nodes'] as unknown[] | undefined)?.length === 1
      )
    )
    expect(answered).to.equal(false)
    await put([fresh])
    const { body } = await reply
    expect(body).to.include({ result: 'drained', evidence: 'observed' })
    expect(rig.writes).to.deep.equal([])
  })
})
