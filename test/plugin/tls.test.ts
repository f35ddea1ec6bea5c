import { expect } from 'chai'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as plainRequest, type IncomingMessage } from 'node:http'
import { createServer, request, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { generate } from 'selfsigned'
import { PORT, serverText, TLS_PATH } from '../../agent/doctor/plugin-values.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import type { Addresses } from './nginx-conf.ts'

/** The certificate's names. nginx compares the host of the agent's URL only with names, even if the host is an address. */
const NAMES = ['gateway.test', '127.0.0.1']

/** Makes a self-signed certificate. */
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

  /** Asks for the state over TLS. */
  const state = async (address: string, token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const options = { ca: pems.cert, servername: 'gateway.test', headers, agent: false, timeout: 5000 }
    const sent = request(`https://${address}/v1/barrier/state`, options).end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: response.statusCode, body: await text(response) }
  }

  it('serves the Barrier API if the listener has a certificate', async () => {
    gateway = await Gateway.start({ workers: 1, tls })
    const { at } = gateway
    expect((await state(at.tls, at.token)).status).to.equal(200)
    expect((await state(at.tls, 'x')).status).to.equal(401)
  })

  describe('with the server that plugin values prints', () => {
    /** Puts an entry, by HTTP or HTTPS. */
    const put = async (scheme: 'http' | 'https', g: Gateway, uid: string) => {
      const headers = { authorization: `Bearer ${g.at.token}` }
      const options = { method: 'PUT', headers, agent: false, timeout: 5000 } as const
      const tlsOptions = { ...options, ca: pems.cert, servername: 'gateway.test' }
      const url = `${scheme}://${g.at.barrier}/v1/barrier/entries`
      const sent = scheme === 'https' ? request(url, tlsOptions) : plainRequest(url, options)
      sent.end(JSON.stringify({ entries: [{ uid, ip: '10.0.0.7', state: 'draining', ttl: 60 }] }))
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      response.resume()
      return response.statusCode
    }

    it('takes no plain HTTP where it has TLS', async () => {
      const httpEnd = (at: Addresses) =>
        serverText('https', false).replaceAll(`0.0.0.0:${PORT}`, at.barrier).replaceAll(TLS_PATH, dir)
      const g = (gateway = await Gateway.start({ workers: 1, httpEnd }))
      expect(await put('http', g, 'u-old')).to.equal(400)
      expect(await put('https', g, 'u-new')).to.equal(200)
      const { body } = await state(g.at.barrier, g.at.token)
      const { entries } = JSON.parse(body) as { entries: { uid: string }[] }
      expect(entries.map(({ uid }) => uid)).to.deep.equal(['u-new'])
    })
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

    /** Starts a gateway. When it is ready, returns its entries and the result of its fetch. */
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
