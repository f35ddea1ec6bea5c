import { expect } from 'chai'
import { createSurvey } from '../../../../agent/round/gather/survey.ts'
import { GATEWAY } from '../../../build/gateway.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const turns = async () => {
  for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve))
}

describe('survey of the gateways', () => {
  function rig() {
    const clock = manualClock()
    let reads = 0
    const survey = createSurvey({
      clock,
      read: async () => {
        reads += 1
        return { beganAt: clock.now(), holders: new Map([['upstreams/web', [`10.0.0.${reads}:80`]]]) }
      }
    })
    const advance = async (ms: number) => {
      for (let left = ms; left > 0; left -= 1000) {
        clock.advance(1000)
        await turns()
      }
    }
    return { survey, advance, reads: () => reads }
  }

  it('reads each gateway at once, and then every 15 s', async () => {
    const { survey, advance, reads } = rig()
    survey.gateways([GATEWAY])
    await turns()
    expect(survey.sighting('g')?.holders.get('upstreams/web')).to.deep.equal(['10.0.0.1:80'])
    await advance(14_000)
    expect(reads()).to.equal(1)
    await advance(2000)
    expect(reads()).to.equal(2)
    await survey.stop()
  })

  it('reads every second while a drain waits', async () => {
    const { survey, advance, reads } = rig()
    survey.gateways([GATEWAY])
    await turns()
    survey.hurry()
    await advance(4000)
    expect(reads()).to.be.above(3)
    await advance(20_000)
    expect(reads()).to.be.below(10)
    await survey.stop()
  })

  it('reuses reads of other parts, and forgets a removed gateway', async () => {
    const { survey, advance, reads } = rig()
    survey.gateways([GATEWAY])
    await advance(5000)
    await survey.read(GATEWAY.ip)
    expect(survey.sighting('g')?.holders.get('upstreams/web')).to.deep.equal(['10.0.0.2:80'])
    await advance(12_000)
    expect(reads()).to.equal(2)
    survey.gateways([])
    expect(survey.sighting('g')).to.equal(undefined)
    await survey.stop()
  })
})
