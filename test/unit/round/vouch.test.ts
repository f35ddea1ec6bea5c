import { expect } from 'chai'
import type { Sources } from '../../../agent/round/gather/sources.ts'
import { vouchForEntries } from '../../../agent/round/ownership.ts'
import { staticPart } from '../../../agent/kubernetes/reflect/watch-status.ts'

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
