import { EventEmitter } from 'node:events'
import type { ClientHttp2Session } from 'node:http2'
import { expect } from 'chai'
import { keepAlive } from '../../../../agent/kubernetes/transport/session.ts'
import { manualClock } from '../../../build/manual-clock.ts'

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
