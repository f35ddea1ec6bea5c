import { expect } from 'chai'
import { createLiveness } from '../../../../agent/kubernetes/reflect/watch-status.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { silent } from '../../../build/apisix.ts'

describe('whether a watch is live', () => {
  const rig = () => {
    const clock = manualClock()
    let changes = 0
    const liveness = createLiveness({ clock, log: silent, onChange: () => (changes += 1), facts: () => ({}) })
    return { clock, liveness, changes: () => changes }
  }

  it('is connecting until everything was listed once; after that, a lost watch is stale', () => {
    const { liveness, changes } = rig()
    expect([liveness.state(), liveness.isSynced()]).eql(['connecting', false])
    liveness.lost('no connection')
    expect([liveness.state(), liveness.problem()]).eql(['connecting', 'no connection'])
    liveness.synced()
    liveness.live()
    expect([liveness.state(), liveness.problem(), liveness.isSynced()]).eql(['live', '', true])
    liveness.lost('status 500')
    expect([liveness.state(), liveness.problem(), liveness.isSynced()]).eql(['stale', 'status 500', true])
    expect(changes()).equal(2)
  })

  it('counts how long each watch has lived, from 0', () => {
    const { clock, liveness } = rig()
    expect(liveness.livedMs()).equal(0)
    liveness.live()
    clock.advance(40)
    expect(liveness.livedMs()).equal(40)
    liveness.begun()
    expect(liveness.livedMs()).equal(0)
  })
})
