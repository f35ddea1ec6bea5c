import { expect } from 'chai'
import type { Drain } from '../../../agent/rules/drain/drain.ts'
import { begin } from '../../../agent/rules/drain/step.ts'
import { createRelister } from '../../../agent/round/schedule.ts'
import { DRAIN_SETTINGS, seen } from '../../build/drain.ts'
import { pod, terminating } from '../../build/pod.ts'

const drainAt = (since: number): Drain =>
  begin(seen(pod(`web-${since}`, terminating(since))), since, DRAIN_SETTINGS) as Drain

/** Makes an inventory that counts its listings. Each listing shows the state at its start. */
function rig(readAt: number | undefined) {
  const listings: number[] = []
  const state = { now: 0, readAt }
  const inventory = {
    readAt: () => state.readAt,
    refresh: async () => {
      listings.push(state.now)
      state.readAt = state.now
    }
  }
  const relister = createRelister({ inventory } as never, 2000)
  const at = (now: number, ...drains: Drain[]) => {
    state.now = now
    return relister.relist(drains, now)
  }
  return { at, listings, state }
}

describe('sweep', () => {
  it('lists nothing while nothing is being drained', () => {
    const { at, listings } = rig(1000)
    expect(at(5000)).to.equal(undefined)
    expect(listings).to.deep.equal([])
  })

  it('lists once for many drains that begin together', () => {
    const { at, listings } = rig(1000)
    const drains: Drain[] = []
    for (let now = 5000; now < 6000; now += 5) {
      drains.push(drainAt(now))
      at(now, ...drains)
    }
    expect(listings).to.deep.equal([5000, 5500])
  })

  it('lists again and again while a drain goes on, to guard it', () => {
    const { at, listings } = rig(1000)
    const drain = drainAt(5000)
    let next = at(5000, drain)
    for (let i = 0; i < 3; i += 1) next = at(next!, drain)
    expect(listings).to.deep.equal([5000, 7000, 9000, 11_000])
  })

  it('leaves the ghost of a removed pod to the usual interval', () => {
    const { at, listings } = rig(6000)
    const ghost = { ...drainAt(5000), phase: 'gone', at: 5500 } as Drain
    expect(at(60_000, ghost)).to.equal(undefined)
    expect(listings).to.deep.equal([])
  })

  it('lists once more after a pod is gone: another writer may have put it back', () => {
    const { at, listings } = rig(6000)
    const gone = { ...drainAt(5000), phase: 'gone', at: 6500 } as Drain
    expect(at(6500, gone)).to.equal(8000)
    at(8000, gone)
    expect(at(10_000, gone)).to.equal(undefined)
    expect(listings).to.deep.equal([8000])
  })

  it('does not hurry for a drain that the last listing already includes', () => {
    const { at, listings } = rig(6000)
    expect(at(6100, drainAt(5000))).to.equal(8000)
    expect(listings).to.deep.equal([])
  })
})
