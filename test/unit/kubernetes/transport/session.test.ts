import { expect } from 'chai'
import { createServer as createPlain } from 'node:http'
import { createSecureServer, createServer, type ClientHttp2Session } from 'node:http2'
import { createServer as createTls } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { systemClock } from '../../../../agent/base/clock.ts'
import { selfSigned } from '../../../../sandbox/kubernetes/tls.ts'
import { openSession, keepAlive } from '../../../../agent/kubernetes/transport/session.ts'
import { EventEmitter } from 'node:events'
import { manualClock } from '../../../build/manual-clock.ts'
import * as fc from 'fast-check'
import { createClockOffset } from '../../../../agent/kubernetes/transport/connection.ts'

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

describe('keepAlive', () => {
  it('leaves a session alone that was destroyed and has not emitted its close yet', () => {
    const pings: (() => void)[] = []
    const session = Object.assign(new EventEmitter(), {
      destroyed: false,
      ping(answered: () => void) {
        if (session.destroyed) throw new Error('The session has been destroyed')
        pings.push(answered)
        return true
      }
    })
    const clock = manualClock()
    keepAlive(session as unknown as ClientHttp2Session, clock, { everyMs: 100, timeoutMs: 500 }, () => 0)
    clock.advance(100)
    expect(pings).to.have.length(1)
    pings[0]?.()
    session.destroyed = true
    clock.advance(1000)
    expect(pings).to.have.length(1)
  })
})

const HOUR = 3_600_000
const START = 1_000_000_000_123

/** The network times of a request and its answer, and the pause before the request, in ms. */
interface Way {
  readonly gap: number
  readonly there: number
  readonly back: number
}

const way = fc.record({
  gap: fc.nat(5000),
  there: fc.oneof(fc.nat(20), fc.nat(5000)),
  back: fc.oneof(fc.nat(20), fc.nat(5000))
})

/** Plays the answers of a server whose clock is `behind` ours. */
function hear(
  offset: ReturnType<typeof createClockOffset>,
  behind: number,
  ways: readonly Way[],
  from = START
) {
  let now = from
  for (const { gap, there, back } of ways) {
    const askedAt = now + gap
    now = askedAt + there + back
    offset.note(new Date(askedAt + there - behind).toUTCString(), askedAt, now)
  }
  return now
}

const quick = (count: number): Way[] =>
  Array.from({ length: count }, () => ({ gap: 1300, there: 5, back: 5 }))

describe('clock offset', () => {
  it('is 0 before the first answer, and while the clocks may agree', () => {
    const offset = createClockOffset()
    expect(offset.behindMs()).to.equal(0)
    hear(offset, 0, quick(20))
    expect(offset.behindMs()).to.equal(0)
  })

  it('is never too large, however slow the network; it is too small by at most a second plus the fastest answer', () => {
    const behind = fc.oneof(fc.integer({ min: -3000, max: 3000 }), fc.integer({ min: -HOUR, max: HOUR }))
    fc.assert(
      fc.property(behind, fc.array(way, { minLength: 1, maxLength: 15 }), (behind, ways) => {
        const offset = createClockOffset()
        hear(offset, behind, ways)
        const found = offset.behindMs()
        const slack = 1000 + Math.min(...ways.slice(-10).map(({ there, back }) => there + back))
        // 0 also means that the server's clock is ahead or behind by too little to detect.
        if (found === 0) expect(Math.abs(behind)).to.be.at.most(slack)
        else expect(found).to.be.within(behind - slack, behind)
      })
    )
  })

  it('follows a clock that was set: at once if an answer shows it, otherwise after ten answers', () => {
    const step = fc.oneof(fc.integer({ min: -1020, max: 1020 }), fc.integer({ min: -HOUR, max: HOUR }))
    fc.assert(
      fc.property(fc.integer({ min: -HOUR, max: HOUR }), step, (before, step) => {
        const offset = createClockOffset()
        const now = hear(offset, before, quick(10))
        const behind = before + step
        // Before and after the step, the error of the offset is at most a second plus the network time.
        hear(offset, behind, quick(Math.abs(step) > 1020 ? 1 : 10), now)
        const found = offset.behindMs()
        if (found === 0) expect(Math.abs(behind)).to.be.at.most(1010)
        else expect(found).to.be.within(behind - 1010, behind)
      })
    )
  })

  it('ignores answers without a date', () => {
    const offset = createClockOffset()
    offset.note(undefined, 5_000_000, 5_000_000)
    offset.note('soon', 5_000_000, 5_000_000)
    expect(offset.behindMs()).to.equal(0)
  })
})
