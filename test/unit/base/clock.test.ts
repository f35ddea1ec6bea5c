import { expect } from 'chai'
import { systemClock } from '../../../agent/base/clock.ts'

describe('system clock', () => {
  it('does not go back when the host’s clock is set back', () => {
    const before = systemClock.now()
    const real = Date.now
    try {
      Date.now = () => real() - 3_600_000
      const after = systemClock.now()
      expect(after).to.be.at.least(before)
      expect(after - before).to.be.below(60_000)
    } finally {
      Date.now = real
    }
  })

  it('counts from the epoch', () => {
    expect(Math.abs(systemClock.now() - Date.now())).to.be.below(60_000)
  })

  it('sleeps, and rejects with the reason when aborted', async () => {
    const began = systemClock.now()
    await Promise.all([systemClock.sleep(20), new Promise(resolve => setTimeout(resolve, 25))])
    expect(systemClock.now() - began).to.be.at.least(19)
    const away = new AbortController()
    const asleep = systemClock.sleep(60_000, away.signal).catch((err: unknown) => err)
    away.abort(new Error('not wanted'))
    expect(await asleep).to.be.instanceOf(Error)
  })

  it('fires an alarm once, at its time, and not after it was cancelled', async () => {
    let rung = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    const keep = setTimeout(() => {}, 5000)
    systemClock.alarm(systemClock.now() + 10, () => ((rung += 1), resolve()))
    systemClock.alarm(systemClock.now() + 5, () => (rung += 100))()
    await promise
    clearTimeout(keep)
    expect(rung).to.equal(1)
  })

  it('accepts an alarm that is farther away than a timer allows', () => {
    const cancel = systemClock.alarm(systemClock.now() + 10 ** 12, () => expect.fail('too early'))
    cancel()
  })
})
