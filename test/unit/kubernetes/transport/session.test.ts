import { expect } from 'chai'
import { createServer as createPlain } from 'node:http'
import { createSecureServer, createServer } from 'node:http2'
import { createServer as createTls } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { systemClock } from '../../../../agent/base/clock.ts'
import { selfSigned } from '../../../../sandbox/kubernetes/tls.ts'
import { openSession } from '../../../../agent/kubernetes/transport/session.ts'

const PING = { everyMs: 1000, timeoutMs: 1000 }

describe('an HTTP/2 session', () => {
  it('that is closed at the moment of connecting rejects, and throws nowhere else', async () => {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const ended = new AbortController()
      // The server runs in this process, so the abort comes before the client learns of the connection.
      server.once('connection', () => ended.abort())
      const credentials = { origin, tls: async () => ({}), headers: async () => ({}), refused: () => {} }
      const opening = openSession(credentials, systemClock, PING, 10_000, ended.signal)
      const outcome = await opening.then(
        () => 'opened',
        (error: unknown) => String(error)
      )
      expect(outcome).to.equal('Error: the server closed the connection')
    } finally {
      server.close()
    }
  })

  const opened = (origin: string, tls = {}) =>
    openSession(
      { origin, tls: async () => tls, headers: async () => ({}), refused: () => {} },
      systemClock,
      PING,
      10_000,
      new AbortController().signal
    ).then(
      () => 'opened',
      (error: unknown) => (error as Error).message
    )

  /** Listens while `use` runs. */
  async function listening(server: Server, use: (port: number) => Promise<unknown>) {
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      await use((server.address() as AddressInfo).port)
    } finally {
      server.close()
    }
  }

  const NO_HTTP2 =
    /^the API server at \S+ does not offer HTTP\/2, which the agent needs: name the API server itself/

  it('with a server that speaks HTTP/1.1 only says so: plain, as kubectl proxy', () =>
    listening(createPlain(), async port =>
      expect(await opened(`http://127.0.0.1:${port}`)).to.match(NO_HTTP2)
    ))

  it('with a server that speaks HTTP/1.1 only says so: with TLS, refused or ignored', async () => {
    const { key, cert } = await selfSigned(['127.0.0.1'])
    for (const ALPNProtocols of [['http/1.1'], undefined])
      await listening(createTls({ key, cert, ...(ALPNProtocols && { ALPNProtocols }) }), async port =>
        expect(await opened(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })).to.match(NO_HTTP2)
      )
  })

  it('names what to change for an unknown CA, for a port without TLS, and for a port at which nothing listens', async () => {
    const { key, cert } = await selfSigned(['127.0.0.1'])
    await listening(createSecureServer({ key, cert }), async port =>
      expect(await opened(`https://127.0.0.1:${port}`)).to.match(
        /\(\w+\): the agent does not trust the CA .* in certificate-authority of the kubeconfig$/
      )
    )
    let closed = 0
    await listening(createPlain(), async port => {
      closed = port
      expect(await opened(`https://127.0.0.1:${port}`)).to.match(
        /\((EPROTO|ERR_SSL_\w+)\): the server does not speak TLS at that port: .* in server of the kubeconfig/
      )
    })
    expect(await opened(`http://127.0.0.1:${closed}`)).to.match(/\(ECONNREFUSED\): no server answers at that/)
  })
})
