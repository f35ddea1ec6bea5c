import { expect } from 'chai'
import {
  BLIND_MS,
  createBlindness,
  createOldGateways,
  vouchForEntries
} from '../../../agent/round/ownership.ts'
import { gathering } from '../../../agent/round/gather/gather.ts'
import type { Sources } from '../../../agent/round/gather/sources.ts'
import { staticPart } from '../../../agent/kubernetes/reflect/watch-status.ts'

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
      // A gateway that has fetched is not ready for two seconds.
      return [isOld(0), isOld(2000), isOld(2001)]
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

const sources = (state: 'live' | 'stale') =>
  ({
    cluster: {
      parts: () => [{ ...staticPart('pods', 1), state }, staticPart('endpointslices', 1)],
      gateways: () => [{}]
    },
    inventory: { readAt: () => 1 }
  }) as unknown as Sources

describe('whether the agent knows every entry', () => {
  const why = (state: 'live' | 'stale', looked: boolean, failing = false) => {
    const said = vouchForEntries(sources(state), failing, looked)
    return said.ok ? '' : said.why
  }

  it('knows them once a round has used a live watch', () => {
    expect(why('live', true)).to.equal('')
  })

  it('does not know them before that, while the watch is down, or after a failed round', () => {
    expect(why('live', false)).to.include('not looked at yet')
    expect(why('stale', true)).to.include('the watch of pods is stale')
    expect(why('live', true, true)).to.include('the last round failed')
  })
})
