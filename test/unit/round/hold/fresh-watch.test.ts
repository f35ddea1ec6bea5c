import { expect } from 'chai'
import { createFreshWatch } from '../../../../agent/round/hold/hooks.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const never = new AbortController().signal
const turn = () => new Promise(resolve => setImmediate(resolve))

describe('a fresh watch', () => {
  it('costs one request for all callers, and each answer is newer than its caller', async () => {
    const clock = manualClock()
    const listeners = new Set<() => void>()
    let [assured, requests] = [-Infinity, 0]
    const watch = {
      assurePods: () => void (requests += 1),
      podsAssuredAt: () => assured,
      onChange: (listener: () => void) => (listeners.add(listener), () => listeners.delete(listener))
    }
    const fresh = createFreshWatch(watch, clock)
    const assure = () => {
      assured = clock.now()
      for (const one of listeners) one()
    }
    const first = fresh(never)
    await turn()
    const later = Array.from({ length: 1000 }, () => fresh(never))
    await turn()
    expect(requests).to.equal(1)
    assure()
    await first
    clock.advance(100)
    await turn()
    expect(requests).to.equal(2)
    const behind = later[0]!.catch((err: Error) => err.message)
    clock.advance(1000)
    expect(await behind).to.equal('the watch of pods is behind')
    await Promise.allSettled(later)
    expect(requests).to.equal(2)
  })
})
