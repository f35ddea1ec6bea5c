import { expect } from 'chai'
import { lookAgain } from '../../../agent/loop/gather.ts'
import { barrier } from '../../build/evidence.ts'

describe('how long a gateway has managed without a node', () => {
  const first = lookAgain(undefined, barrier({ bypasses: 0 }), 100)
  const quietSince = (differs: Parameters<typeof barrier>[0]) =>
    lookAgain(first, barrier(differs), 900).quietSince

  it('runs from the first look, for as long as nothing is bypassed', () => {
    expect(first.quietSince).to.equal(100)
    expect(quietSince({ inflight: { requests: 3, long: 0 } })).to.equal(100)
    expect(quietSince({ bypasses: 1 })).to.equal(900)
  })

  it('begins anew where the gateway was restarted', () => {
    expect(quietSince({ instance: 'another' })).to.equal(900)
  })
})
