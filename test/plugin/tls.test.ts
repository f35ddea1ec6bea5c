import { expect } from 'chai'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'

/** The certificate's name. nginx compares the host of the agent's URL only with names, even if it is an address. */
const NAMES = ['gateway.test', '127.0.0.1']

/** A self-signed certificate. */
const selfSigned = async () =>
  await generate([{ name: 'commonName', value: 'apisix-drain test' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'subjectAltName', altNames: NAMES.map(value => ({ type: 2, value })) }
    ]
  })

describe('TLS', () => {
  let gateway: Gateway | undefined
  let dir: string
  let tls: { cert: string; key: string }
  let pems: { cert: string; private: string }

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'apisix-drain-tls-'))
    pems = await selfSigned()
    tls = { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key') }
    writeFileSync(tls.cert, pems.cert)
    writeFileSync(tls.key, pems.private)
  })
  after(() => rmSync(dir, { recursive: true, force: true }))
  afterEach(async () => {
    await gateway?.stop()
    gateway = undefined
  })

  it('serves the Barrier API if the listener has a certificate', async () => {
    gateway = await Gateway.start({ workers: 1, tls })
    const { at } = gateway
    const status = async (authorization: string) =>
      await new Promise<number | undefined>((resolve, reject) => {
        request(
          `https://${at.tls}/v1/barrier/state`,
          {
            ca: pems.cert,
            servername: 'gateway.test',
            headers: { authorization },
            agent: false,
            timeout: 5000
          },
          response => {
            response.resume()
            resolve(response.statusCode)
          }
        )
          .on('error', reject)
          .end()
      })
    expect(await status(`Bearer ${at.token}`)).to.equal(200)
    expect(await status('Bearer x')).to.equal(401)
  })

  describe('when entries are fetched at start', () => {
    let agent: Server

    beforeEach(async () => {
      agent = createServer({ cert: pems.cert, key: pems.private }, (_request, response) => {
        response.end(JSON.stringify({ entries: [{ uid: 'u-1', ip: '10.0.0.7', state: 'sealed', ttl: 60 }] }))
      })
      agent.listen(0, '127.0.0.1')
      await once(agent, 'listening')
    })
    afterEach(() => {
      agent.closeAllConnections()
      agent.close()
    })

    /** The entries of the gateway when it is ready, and the result of the fetch in its state. */
    const fetched = async (trust: object) => {
      const { port } = agent.address() as AddressInfo
      const attr = `agent = "https://127.0.0.1:${port}", fetch_give_up = 2`
      const g = await Gateway.start({ workers: 1, attr, ...trust })
      gateway = g
      await eventually('it is ready', async () => {
        const { status } = await g.barrier.send('GET', '/v1/barrier/ready', undefined, {})
        return status === 200
      })
      const state = await g.barrier.state()
      return { uids: state.entries.map(e => e.uid), fetch: state.fetch }
    }

    it('accepts the entries of an agent whose certificate is trusted', async () => {
      expect(await fetched({ trust: tls.cert })).to.deep.equal({ uids: ['u-1'], fetch: undefined })
    })

    it('accepts none from an agent whose certificate is not trusted', async () => {
      const { uids, fetch } = await fetched({})
      expect(uids).to.deep.equal([])
      expect(fetch).to.match(/failed the TLS handshake/)
    })
  })
})
