import { expect } from 'chai'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { systemClock } from '../../../agent/base/clock.ts'
import { openSession } from '../../../agent/transport/session.ts'

const PING = { everyMs: 1000, timeoutMs: 1000 }

describe('an HTTP/2 session', () => {
  it('that is closed at the moment of connecting rejects, and throws nowhere else', async () => {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const ended = new AbortController()
      // The server runs in this process, so it aborts before the client learns of the connection.
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
})
