import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { CodedError } from '../../../../agent/base/errors.ts'
import { createAdminApi } from '../../../../agent/gateway/apisix/admin-api.ts'
import { createBarrierClient } from '../../../../agent/gateway/apisix/barrier-api.ts'
import { selfSigned, type Certificate } from '../../../../sandbox/kubernetes/tls.ts'

const SECRET = 'key-that-only-the-right-server-may-see'

describe('TLS to APISIX', () => {
  const ends: (() => void)[] = []
  afterEach(() => {
    for (const end of ends.splice(0)) end()
  })

  /** Starts a server with this certificate. Returns its address and the secrets that it has received. */
  const serve = async ({ cert, key }: Certificate) => {
    const shown: string[] = []
    const server = createServer({ cert, key }, ({ headers }, response) => {
      shown.push(`${String(headers['x-api-key'] ?? '')}${headers.authorization ?? ''}`)
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({
          total: 0,
          list: [],
          wire: 1,
          instance: 'i',
          plugin: '1',
          fit: true,
          unfit: [],
          now: 0,
          entries: [],
          held: { entries: 0, generation: 0, late: 0 },
          workers: [],
          counts: { moved: 0, succeeded: 0, refused: 0, bypasses: 0, errors: 0 }
        })
      )
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    ends.push(() => {
      server.closeAllConnections()
      server.close()
    })
    return { shown, port: (server.address() as AddressInfo).port }
  }
  const clients = (port: number, pem: string | undefined | (() => string), serverName?: string) => {
    const ca = typeof pem === 'string' ? () => pem : pem
    const admin = createAdminApi({
      url: `https://127.0.0.1:${port}`,
      key: () => SECRET,
      ca,
      timeoutMs: 5000,
      pageSize: 10
    })
    const barrier = createBarrierClient({
      port,
      scheme: 'https',
      token: () => SECRET,
      ca,
      serverName,
      timeoutMs: 5000
    })
    ends.push(
      () => admin.close(),
      () => barrier.close()
    )
    return {
      'the Admin API': () => admin.list('upstreams', 1),
      'a Barrier API': () => barrier.at('127.0.0.1').state()
    }
  }
  const right = () => selfSigned(['127.0.0.1'])

  it('a Barrier API is called by its address, with a certificate for the configured name', async () => {
    const certificate = await selfSigned(['barrier.apisix-drain'])
    const { port, shown } = await serve(certificate)
    const ask = clients(port, certificate.ca, 'barrier.apisix-drain')['a Barrier API']
    await ask()
    await ask()
    expect(shown).to.deep.equal([`Bearer ${SECRET}`, `Bearer ${SECRET}`])
    for (const other of [undefined, 'other.apisix-drain']) {
      const { 'a Barrier API': call } = clients(port, certificate.ca, other)
      const refused: unknown = await call().catch((err: unknown) => err)
      expect((refused as CodedError).message).to.match(/ALTNAME_INVALID/)
    }
    expect(shown).to.have.length(2)
  })

  for (const what of ['the Admin API', 'a Barrier API'] as const) {
    it(`${what} is judged by a replaced CA from its next connection on`, async () => {
      const old = await right()
      const next = await right()
      let ca = old.ca
      const { port, shown } = await serve(next)
      const { [what]: call } = clients(port, () => ca)
      const refused: unknown = await call().catch((err: unknown) => err)
      expect((refused as CodedError).message).to.match(/SELF_SIGNED|VERIFY|SIGNATURE/)
      ca = next.ca
      await call()
      expect(shown).to.have.length(1)
      expect(shown[0]).to.include(SECRET)
    })

    const refused: [string, () => Promise<{ certificate: Certificate; ca: string | undefined }>, RegExp][] = [
      [
        'of another CA',
        async () => ({ certificate: await right(), ca: (await right()).ca }),
        /SELF_SIGNED|VERIFY|SIGNATURE/
      ],
      [
        'of no CA that the system knows',
        async () => ({ certificate: await right(), ca: undefined }),
        /SELF_SIGNED/
      ],
      [
        'for another name',
        async () => {
          const certificate = await selfSigned(['127.9.9.9', 'other.example'])
          return { certificate, ca: certificate.ca }
        },
        /ALTNAME_INVALID/
      ]
    ]
    for (const [whose, make, why] of refused) {
      it(`${what} with a certificate ${whose} is refused before it gets the secret`, async () => {
        const { certificate, ca } = await make()
        const { port, shown } = await serve(certificate)
        const { [what]: call } = clients(port, ca)
        const error: unknown = await call().catch((err: unknown) => err)
        expect(error).to.be.instanceOf(CodedError)
        expect((error as CodedError).code).to.match(/^(ADMIN|BARRIER)_UNREACHABLE$/)
        expect((error as CodedError).message)
          .to.match(why)
          .and.not.include(SECRET)
        expect(shown).to.deep.equal([])
      })
    }
  }
})
