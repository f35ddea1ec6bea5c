import { expect } from 'chai'
import { pollPause } from '../../../../agent/gateway/barrier/barrier-reading.ts'

describe('pause before the next poll of a gateway', () => {
  const pause = (entries: number, unchangedFor = 0, busy = false) => pollPause(entries, busy, unchangedFor)

  it('is short right after a change, and grows to half a second while nothing happens', () => {
    expect([0, 400, 2000, 10_000, 60_000].map(ms => pause(1, ms))).to.deep.equal([20, 20, 100, 500, 500])
  })

  it('is at least 50 ms while requests are in flight, even if the answers keep changing', () => {
    expect([pause(1, 0, true), pause(1, 2000, true)]).to.deep.equal([50, 100])
  })

  it('grows with the number of entries, even past half a second, to spare the gateway', () => {
    expect([50, 100, 500, 5000].map(entries => pause(entries))).to.deep.equal([20, 20, 100, 1000])
    expect([pause(500, 0, true), pause(500, 60_000)]).to.deep.equal([100, 500])
  })
})
