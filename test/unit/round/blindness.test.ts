import { expect } from 'chai'
import { BLIND_MS, createBlindness, createOldGateways } from '../../../agent/round/ownership.ts'
import { gathering } from '../../../agent/round/gather/gather.ts'
import type { Sources } from '../../../agent/round/gather/sources.ts'

describe('a watch that is down', () => {
  it('is too old after a while, counted from its end, and not once it is back', () => {
    const watch = createBlindness()
    expect(watch.isBlind(1e9)).to.equal(false)
    watch.look(false, 1000)
    watch.look(false, 5000)
    expect(watch.isBlind(1000 + BLIND_MS)).to.equal(false)
    expect(watch.isBlind(1001 + BLIND_MS)).to.equal(true)
    watch.look(true, 1002 + BLIND_MS)
    expect(watch.isBlind(1e9)).to.equal(false)
  })

  it('makes the list of gateways too old if it is their watch alone', () => {
    const after = (...down: string[]) => {
      const parts = ['pods', 'gateways'].map(name => ({
        name,
        state: down.includes(name) ? 'stale' : 'live'
      }))
      const isOld = createOldGateways(() => parts as never)
      return [isOld(0), isOld(BLIND_MS), isOld(BLIND_MS + 1)]
    }
    expect(after('gateways')).to.deep.equal([false, false, true])
    expect(after('gateways', 'pods')).to.deep.equal([false, false, false])
    expect(after()).to.deep.equal([false, false, false])
  })

  it('leaves the list of gateways incomplete if it is the watch of gateways', () => {
    const sources = { cluster: { gateways: () => [], parts: () => [{ name: 'gateways', synced: true }] } }
    const known = (gatewaysAreOld: boolean) =>
      gathering(sources as unknown as Sources, {
        world: {} as never,
        drains: new Map(),
        tookOver: () => false,
        before: { changes: [], kept: [] },
        now: 0,
        gatewaysAreOld
      }).gatewaysKnown
    expect([known(false), known(true)]).to.deep.equal([true, false])
  })
})
