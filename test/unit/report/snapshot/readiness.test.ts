import { expect } from 'chai'
import { createReadiness } from '../../../../agent/report/snapshot/snapshot.ts'

describe('readiness', () => {
  it('lists every part that has not reported ready', () => {
    const readiness = createReadiness()
    const pods = readiness.part('watch:pods')
    const gateways = readiness.part('gateways')
    expect(readiness.missing()).to.deep.equal([
      { part: 'watch:pods', why: 'has not reported yet' },
      { part: 'gateways', why: 'has not reported yet' }
    ])
    pods.ready()
    gateways.notReady('none found')
    expect(readiness.missing()).to.deep.equal([{ part: 'gateways', why: 'none found' }])
    readiness.part('gateways').ready()
    expect(readiness.missing()).to.deep.equal([])
    readiness.part('watch:pods')
    expect(readiness.missing(), 'asking again does not forget').to.deep.equal([])
  })
})
