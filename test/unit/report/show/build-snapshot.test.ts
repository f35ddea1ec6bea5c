import { expect } from 'chai'
import { SNAPSHOT_VERSION } from '../../../../agent/report/snapshot/snapshot.ts'
import { buildSnapshot } from '../../../../agent/report/show/build-snapshot.ts'
import { pod } from '../../../build/pod.ts'
import { ackFor } from '../../../build/serve.ts'
import { NO_MOMENTS, sources, waitingDrain } from '../../../build/snapshot.ts'

describe('snapshot', () => {
  it('shows a drain with the moments that its witnesses report', () => {
    const drain = waitingDrain()
    const [view] = buildSnapshot(sources({ hooks: new Map([[drain.uid, 1]]) })).drains
    expect(view).to.deep.include({
      pod: 'web-1',
      phase: 'draining',
      hooks: 1,
      why: 'the removal is being written'
    })
    expect(view?.moments).to.deep.equal({
      ...NO_MOMENTS,
      decidedAt: 1_000_000,
      seenAt: 1_000_001,
      hookAt: 1_000_040
    })
    expect(view?.verdict).to.deep.equal({ kind: 'waiting', grade: null, places: null, lastEndpoint: false })
    expect(view?.gateways.map(gateway => gateway.name)).to.deep.equal(['apisix-0'])
  })

  it('prefers the moments that the loop recorded', () => {
    const drain = waitingDrain()
    const plain = buildSnapshot(sources()).drains[0]?.moments
    if (!plain) throw new Error('no drain')
    const moments = new Map([[drain.uid, { ...plain, acceptedAt: 1_000_060 }]])
    expect(buildSnapshot(sources({ moments })).drains[0]?.moments.acceptedAt).to.equal(1_000_060)
  })

  it('shows every phase of a drain', () => {
    const { pod: fact, uid, witnesses, since, deadline, stops, ports, isWhole } = waitingDrain()
    const base = {
      pod: { ...fact, deletionAt: undefined },
      uid,
      decidedAt: undefined,
      witnesses,
      since,
      deadline,
      stops,
      ports,
      isWhole
    }
    const proven = {
      kind: 'proven',
      grade: 'observed',
      places: 2,
      removedAt: 1,
      forced: false,
      succeeded: [],
      at: 5,
      why: 'seen',
      gateways: [{ name: 'apisix-0', grade: 'observed', at: 1, why: '' }],
      holders: []
    } as const
    const { drains } = buildSnapshot(
      sources({
        drains: [
          { ...base, phase: 'proven', at: 5, verdict: proven },
          { ...base, phase: 'gone', at: 9, verdict: proven },
          { ...base, phase: 'undone', at: 5, why: 'the container is back' }
        ]
      })
    )
    expect(drains.map(drain => drain.verdict)).to.deep.equal([
      { kind: 'proven', grade: 'observed', places: 2, lastEndpoint: false },
      { kind: 'proven', grade: 'observed', places: 2, lastEndpoint: false },
      null
    ])
    expect(drains.map(drain => drain.moments.goneAt)).to.deep.equal([null, 9, null])
    expect(drains.map(drain => drain.moments.decidedAt)).to.deep.equal([null, null, null])
    expect(drains.map(drain => drain.why)).to.deep.equal(['seen', 'seen', 'the container is back'])
  })

  it('shows the records of finished drains', () => {
    const [past] = buildSnapshot(sources()).drains
    const acks = [{ at: 2, by: 'a', ack: ackFor(pod('web-1')) }]
    const lags = [{ at: 2, ms: 41, grade: 'barrier' as const, uid: 'u', namespace: 'shop', owner: null }]
    const snapshot = buildSnapshot(sources({ history: { unproved: [], past: [past!], acks, lags } }))
    expect(snapshot).to.deep.include({ unproved: [], past: [past], acks, lags })
  })

  it('is frozen, survives JSON, and is the same for the same sources', () => {
    const snapshot = buildSnapshot(sources())
    expect(() => (snapshot.drains as unknown[]).push(1)).to.throw(TypeError)
    expect(Object.isFrozen(snapshot.gateways[0]?.control)).to.equal(true)
    const text = JSON.stringify(snapshot)
    expect(JSON.stringify(buildSnapshot(sources()))).to.equal(text)
    expect(JSON.parse(text)).to.have.property('version', SNAPSHOT_VERSION)
    expect(snapshot.gateways[0]).to.include({ name: 'apisix-0', host: null, available: 'observed' })
  })
})
