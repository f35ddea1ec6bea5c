import { expect } from 'chai'

import { aged, difference, type Sides } from '../../../../agent/rules/plan/difference.ts'

/** Returns sides that agree, except for the fields that a test changes. */
const sides = (differs: Partial<Sides> = {}): Sides => ({
  endpoints: ['10.0.0.1:8080', '10.0.0.2:8080'],
  isGone: node => node === '10.0.0.9:8080',
  admin: ['10.0.0.1:8080', '10.0.0.2:8080'],
  gateways: new Map([['apisix-0', ['10.0.0.2:8080', '10.0.0.1:8080']]]),
  ...differs
})

describe('plan: three-way difference', () => {
  it('is empty if all three agree, in any order', () => {
    expect(difference(sides())).to.deep.equal([])
  })

  it('finds a ghost in the Admin API, and in each gateway that has it', () => {
    const found = difference(
      sides({
        admin: ['10.0.0.1:8080', '10.0.0.2:8080', '10.0.0.9:8080'],
        gateways: new Map([
          ['apisix-0', ['10.0.0.1:8080', '10.0.0.2:8080']],
          ['apisix-1', ['10.0.0.1:8080', '10.0.0.2:8080', '10.0.0.9:8080']]
        ])
      })
    )
    expect(found).to.deep.equal([
      { kind: 'ghost', node: '10.0.0.9:8080', gateway: null },
      { kind: 'ghost', node: '10.0.0.9:8080', gateway: 'apisix-1' }
    ])
  })

  it('finds nodes that a gateway has not removed yet, and nodes that it does not have yet', () => {
    const gateways = new Map([['apisix-0', ['10.0.0.1:8080', '10.0.0.3:8080']]])
    expect(difference(sides({ gateways }))).to.deep.equal([
      { kind: 'stale', node: '10.0.0.3:8080', gateway: 'apisix-0' },
      { kind: 'missing', node: '10.0.0.2:8080', gateway: 'apisix-0' }
    ])
  })

  it('reports a missing ready endpoint only if the holder is known to follow its Service', () => {
    const endpoints = ['10.0.0.1:8080', '10.0.0.2:8080', '10.0.0.4:8080']
    expect(difference(sides({ endpoints }))).to.deep.equal([
      { kind: 'missing', node: '10.0.0.4:8080', gateway: null }
    ])
    expect(difference(sides({ endpoints: undefined }))).to.deep.equal([])
  })

  it('reports the age of each deviation, and starts over if the deviation had gone', () => {
    const ghost = { kind: 'ghost', node: '10.0.0.9:8080', gateway: null } as const
    const stale = { kind: 'stale', node: '10.0.0.9:8080', gateway: 'apisix-0' } as const
    const first = aged([], [ghost], 1000)
    const second = aged(first, [ghost, stale], 2000)
    expect(second).to.deep.equal([
      { ...ghost, since: 1000 },
      { ...stale, since: 2000 }
    ])
    expect(aged(aged(second, [], 3000), [ghost], 4000)).to.deep.equal([{ ...ghost, since: 4000 }])
  })
})
