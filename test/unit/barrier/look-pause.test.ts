import { expect } from 'chai'
import { lookPause } from '../../../agent/barrier/look-pause.ts'

describe('how long until a gateway is looked at again', () => {
  const pause = (entries: number, unchangedFor = 0, busy = false) =>
    lookPause({ entries, busy, unchangedFor })

  it('is short right after a change, and grows to half a second while nothing happens', () => {
    expect([0, 400, 2000, 10_000, 60_000].map(ms => pause(1, ms))).to.deep.equal([20, 20, 100, 500, 500])
  })

  it('is no shorter than 50 ms while requests are in flight, when something changes all the time', () => {
    expect([pause(1, 0, true), pause(1, 2000, true)]).to.deep.equal([50, 100])
  })

  it('grows with the number of entries, and past half a second: their answers cost the gateway something', () => {
    expect([50, 100, 500, 5000].map(entries => pause(entries))).to.deep.equal([20, 20, 100, 1000])
    expect([pause(500, 0, true), pause(500, 60_000)]).to.deep.equal([100, 500])
  })
})
