import { expect } from 'chai'
import * as fc from 'fast-check'
import { gatewayLags } from '../../../agent/dashboard/model/lags.ts'
import {
  lanesOf,
  rolloutsOf,
  roundUp,
  rowsOf,
  scaleOf,
  settledAt,
  waitsOf,
  workloadOf
} from '../../../agent/dashboard/model/lanes.ts'
import { sceneOf } from '../../dashboard/snapshots.ts'

const NOW = 1_800_000_000_000
const scene = sceneOf({ now: NOW, live: 4, past: 80, holders: 0 })

describe('lanes', () => {
  const lanes = lanesOf(scene.drains, scene.past)

  it('shows live lanes first, those with the least time left on top (D8)', () => {
    expect(lanes.map(({ live }) => live).lastIndexOf(true)).to.equal(3)
    const deadlines = lanes.slice(0, 4).map(({ drain }) => drain.deadline)
    expect(deadlines).to.deep.equal(deadlines.toSorted((a, b) => a - b))
    const [first, ...others] = scene.drains
    const proved = {
      ...first!,
      uid: 'p',
      deadline: 0,
      verdict: { ...first!.verdict!, kind: 'proven' as const }
    }
    expect(lanesOf([proved, ...others], []).at(-1)?.drain.uid).to.equal('p')
  })

  it('shows a last endpoint that is held as planned as a state of its own, not as a failure (D10)', () => {
    const [first] = scene.drains
    const kept = { ...first!, verdict: { ...first!.verdict!, lastEndpoint: true } }
    const standings = [kept, { ...kept, phase: 'expired' as const }, { ...kept, phase: 'gone' as const }]
    expect(lanesOf(standings, []).map(({ standing }) => standing)).to.deep.equal(['kept', 'kept', 'kept'])
    expect(lanesOf([{ ...first!, phase: 'expired' }], [])[0]?.standing).to.equal('unproved')
  })

  it('shows a reason that several drains wait for once, with their number (D8)', () => {
    const many = Array.from({ length: 498 }, (_, i) => ({
      ...scene.drains[0]!,
      uid: `u${i}`,
      gateways: [
        { name: 'apisix-2', grade: undefined, at: undefined, why: `${i + 1} requests are in flight` }
      ]
    }))
    const alone = { ...scene.drains[0]!, uid: 'alone', gateways: [], why: 'the Admin API does not answer' }
    const [wait, ...rest] = waitsOf(lanesOf([...many, alone], scene.past))
    expect(rest).to.deep.equal([])
    expect(wait?.count).to.equal(498)
    expect(wait?.why).to.match(/^apisix-2: \d+ requests are in flight$/)
  })

  it('shows the state of each, and which gateway was last', () => {
    expect(lanes[0]).to.include({ standing: 'waiting', lagMs: null })
    expect(lanes[4]).to.include({ standing: 'proved' })
    expect(lanes.filter(({ standing }) => standing === 'unproved')).to.have.length(2)
  })

  it('uses a scale that fits nine of ten lanes', () => {
    const scaleMs = scaleOf(lanes, NOW)
    const fitting = lanes.filter(lane => settledAt(lane, NOW) <= scaleMs).length
    expect(fitting).to.be.at.least(lanes.length * 0.9)
    expect(scaleMs).to.be.below(10_000)
    expect(scaleOf([], NOW)).to.equal(20)
  })

  it('law: a round number at or above', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), ms => {
        const round = roundUp(ms)
        expect(round).to.be.at.least(ms)
        expect(round).to.be.below(ms * 2.6)
        expect(String(round)).to.match(/^[125]0*$/)
      })
    )
  })
})

describe('gateway lags', () => {
  it('names the gateway that confirms last', () => {
    const lags = gatewayLags(lanesOf([], scene.past))
    expect([...lags.keys()]).to.deep.equal(['apisix-0', 'apisix-1', 'apisix-2'])
    const p50 = [...lags.values()].map(lag => lag.p50)
    expect(p50).to.deep.equal(p50.toSorted((a, b) => a - b))
    expect(gatewayLags([]).size).to.equal(0)
  })
})

describe('rollouts', () => {
  it('finds the Deployment behind a ReplicaSet, and nothing if there is none', () => {
    expect(workloadOf('ReplicaSet/web-5d7f9c', 'shop')).to.equal('shop / Deployment web')
    expect(workloadOf('ReplicaSet/plain', 'shop')).to.equal('shop / ReplicaSet plain')
    expect(workloadOf('StatefulSet/db-main', 'shop')).to.equal('shop / StatefulSet db-main')
    expect(workloadOf(null, 'shop')).to.equal('shop / pods without an owner')
  })

  it('groups pods that ended together', () => {
    const [first, , , , ...past] = lanesOf(scene.drains, scene.past)
    const old = { ...past[0]!, start: first!.start - 600_000, id: 'old' }
    const [newer, older] = rolloutsOf([old, first!])
    expect(newer).to.include({ waiting: 1, proved: 0, tookMs: null })
    expect(older).to.include({ name: 'shop / Deployment web', proved: 1, waiting: 0 })
    expect(older?.tookMs).to.be.a('number')
  })

  it('are a row each, with the stuck pods and their reasons, and open into all pods (E7)', () => {
    const lanes = lanesOf(scene.drains, scene.past)
    const rows = (differs: Partial<Parameters<typeof rowsOf>[1]> = {}) =>
      rowsOf(lanes, {
        at: NOW + 5000,
        opened: '',
        isWhole: false,
        selected: undefined,
        ...differs
      })
    const kinds = (some: ReturnType<typeof rows>) => some.map(({ kind }) => kind[0]).join('')
    const closed = rows()
    expect(kinds(closed)).to.match(/^r(lr){1,3}r*$/)
    const [first, stuck, reason] = closed
    expect(stuck).to.deep.include({ kind: 'lane', lane: lanes[0] })
    expect(reason)
      .to.have.property('text')
      .that.matches(/^apisix-2: 2 requests are in flight\. .* after 27 s in all/)
    expect(kinds(rows({ at: NOW })), 'they have only begun to wait').to.match(/^r+$/)
    if (first?.kind !== 'rollout') throw new Error('no rollout')
    const opened = rows({ opened: first.rollout.id })
    expect(opened.length).to.be.above(closed.length)
    expect(opened.slice(0, 3)).to.deep.equal([{ ...first, isOpen: true }, stuck, reason])
    expect(rows({ selected: lanes[0] })).to.deep.equal(opened)
    expect(rows({ isWhole: true }).filter(({ kind }) => kind === 'lane')).to.have.length(lanes.length)
    const sealed = lanesOf(
      scene.drains.map(drain => ({
        ...drain,
        gateways: drain.gateways.map(one => ({ ...one, sealedAt: 1 }))
      })),
      []
    )
    const [, , help] = rowsOf(sealed, { at: NOW + 5000, opened: '', isWhole: true, selected: undefined })
    expect(help).to.have.property('text').that.contains('No new request comes. It ends with its last one')
  })
})
