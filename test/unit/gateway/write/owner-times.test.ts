import { expect } from 'chai'
import { createOwnerTimes } from '../../../../agent/gateway/write/owner-times.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const OWNER = 'ingress-controller-2'

describe('the time that owners get', () => {
  const rig = () => {
    const clock = manualClock(0)
    return { clock, times: createOwnerTimes(clock) }
  }

  it('is twice the slowest removal of this owner', () => {
    const { clock, times } = rig()
    const unknown = times.of(OWNER)
    clock.advance(200)
    times.took(OWNER, 0, 1000)
    expect(times.of(OWNER)).equal(400).lessThan(unknown)
    expect(times.of('unknown')).equal(unknown)
  })

  it('is not learned from a removal that another agent may have made', () => {
    const { clock, times } = rig()
    const before = times.of(OWNER)
    clock.advance(800)
    times.took(OWNER, 0, 1000)
    times.took(undefined, 700, 1700)
    expect(times.of(OWNER)).equal(before)
  })

  it('is 0 for a while after the owner was late', () => {
    const { clock, times } = rig()
    times.late(OWNER)
    expect(times.of(OWNER)).equal(0)
    clock.advance(10_000)
    expect(times.of(OWNER)).greaterThan(0)
  })
})
