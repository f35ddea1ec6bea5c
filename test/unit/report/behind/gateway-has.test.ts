import { expect } from 'chai'
import { gatewaysHave } from '../../../../agent/report/behind/differences.ts'
import { holder } from '../../../build/holder.ts'

const WROTE_AT = 1000

/** Whether a gateway has a holder that was written as revision 41 at `WROTE_AT`. Its worker has applied revision `applied`. */
const has = ({
  mode = 'etcd',
  asked = 0,
  applied = 40,
  revisions = { upstreams: applied } as Record<string, number>,
  problem = '',
  nodes = ['10.0.0.1:80'],
  sighting = undefined as unknown
}) =>
  gatewaysHave(
    {
      mode: { current: () => ({ mode }) },
      barrier: {
        state: () => ({
          problem,
          lastAttemptAt: asked,
          lastSuccessAt: asked,
          // The gateway's clock is half a second ahead.
          status: { now: (asked + 500) / 1000, workers: [{ revision: applied, revisions, applied: 1.7 }] }
        })
      },
      probe: { sighting: () => sighting }
    } as never,
    [{ id: 'g', name: 'apisix-0', ip: '10.1.0.1', ready: true, terminating: false, host: undefined }]
  )(holder('web', nodes, { revision: 41 }), WROTE_AT)[0]

describe('whether a gateway has the present revision', () => {
  it('is not known from a report that was asked for before the write: the report is just old', () => {
    expect(has({ asked: WROTE_AT - 1 })).to.include({ at: undefined, why: '' })
    expect(has({ asked: WROTE_AT })).to.include({
      at: undefined,
      why: 'a worker has applied revision 40, and not 41'
    })
  })

  it('is true with any report that shows the revision, from the time of the last worker on the agent’s clock', () => {
    expect(has({ asked: 3000, applied: 41 })).to.include({ at: 1200 })
    expect(has({ asked: 1100, applied: 41 }), 'never after the answer').to.include({ at: 1100 })
  })

  it('is by the revisions of that kind of object, however far a worker is in another kind', () => {
    const by = (revisions: Record<string, number>) =>
      has({ asked: 3000, applied: 41, revisions })?.at !== undefined
    const kinds = [
      { routes: 60, upstreams: 40 },
      { routes: 60, upstreams: 0 },
      { upstreams: 41 },
      { routes: 60 }
    ]
    expect(kinds.map(by)).to.deep.equal([false, false, true, true])
  })

  it('is not if it stopped answering before, and says that', () => {
    expect(has({ asked: 3000, problem: 'no connection' })?.why).to.equal(
      'it does not answer, and had applied revision 40 before'
    )
  })

  it('is a read of the Control API in standalone mode, which begins after the write', () => {
    const shows = (beganAt: number, ...nodes: string[]) =>
      has({
        mode: 'standalone',
        applied: 99,
        sighting: { beganAt, holders: new Map([['upstreams/web', nodes]]) }
      })
    expect(shows(WROTE_AT, '10.0.0.1:80')).to.include({ at: undefined, why: '' })
    expect(shows(WROTE_AT + 1, '10.0.0.1:80')).to.include({ at: WROTE_AT + 1 })
    expect(shows(WROTE_AT + 1)).to.include({ at: undefined, why: 'its Control API lists other nodes' })
    const unknown = { beganAt: WROTE_AT + 1, holders: new Map() }
    expect(has({ mode: 'standalone', nodes: [], sighting: unknown })).to.include({ at: undefined })
  })
})
