import { expect } from 'chai'
import * as fc from 'fast-check'
import { cutName, fullMoment, moment } from '../../../agent/dashboard/model/format.ts'
import { titleOf } from '../../../agent/dashboard/model/headline.ts'
import { laneAt, lanesOf } from '../../../agent/dashboard/model/lanes.ts'
import { decidedBy, worthOf } from '../../../agent/dashboard/model/worth.ts'
import { hashOf, RANGES, SHOWS, viewOf, type View } from '../../../agent/dashboard/model/view.ts'
import { availableWords, GRADES, HOLDER_STATES } from '../../../agent/dashboard/model/words.ts'
import type { Snapshot } from '../../../agent/report/snapshot/snapshot.ts'
import { sceneOf } from '../../dashboard/snapshots.ts'

const NOW = Date.UTC(2026, 10, 24, 14, 3, 22, 481)
const DAY_MS = 86_400_000
const scene = sceneOf({ now: NOW, live: 2, past: 40, holders: 0 })
const lanes = lanesOf(scene.drains, scene.past)

describe('dashboard: the address of the page (D13)', () => {
  const nothing = viewOf('')

  it('is empty for the default view, and ignores fields and choices that do not exist', () => {
    expect(hashOf(nothing)).to.equal('')
    expect(nothing).to.include({ show: 'all', range: '1 h', drain: '', find: '' })
    expect(viewOf('#show=everything&range=2+years&other=1')).to.deep.equal(nothing)
  })

  it('law: a link shows the same view', () => {
    const any = fc.record({
      show: fc.constantFrom(...SHOWS),
      range: fc.constantFrom(...RANGES),
      find: fc.string({ unit: 'grapheme' }),
      drain: fc.string(),
      seek: fc.string()
    })
    fc.assert(
      fc.property(any, differs => {
        const view: View = { ...nothing, ...differs }
        expect(viewOf(`#${hashOf(view)}`)).to.deep.equal(view)
      })
    )
  })

  it('finds the drain of a link by its id, and by its uid if another agent saw it at another time', () => {
    const [first] = lanes
    expect(laneAt(lanes, first!.id)).to.equal(first)
    expect(laneAt(lanes, first!.drain.uid)).to.equal(first)
    expect(laneAt(lanes, `${first!.drain.uid} 17`)).to.equal(first)
    expect(laneAt(lanes, 'none 17')).to.equal(undefined)
    expect(laneAt(lanes, '')).to.equal(undefined)
  })
})

describe('dashboard: plain words (D13)', () => {
  it('writes no state as the code spells it', () => {
    const all = { ...GRADES, none: availableWords({ available: null }), ...HOLDER_STATES }
    for (const [raw, { label, title }] of Object.entries(all)) {
      expect(title.length, raw).to.be.above(20)
      if (raw.includes('-') || raw in GRADES) expect(label, raw).to.not.equal(raw)
    }
  })
})

describe('dashboard: times (D9)', () => {
  it('has the date on other days than today, and always in the tooltip', () => {
    expect(moment(NOW, NOW)).to.match(/^\d\d:\d\d:\d\d$/)
    expect(moment(NOW - DAY_MS, NOW)).to.match(/^\d+ Nov, \d\d:\d\d:\d\d$/)
    expect(fullMoment(NOW)).to.match(/^\d+ Nov 2026, \d\d:\d\d:\d\d\.481 \S+/)
  })
})

describe('dashboard: names (D12)', () => {
  it('law: the two parts are the name, and the end of a long one stays whole', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 80 }), name => {
        const [start, end] = cutName(name)
        expect(start + end).to.equal(name)
        expect(end.length).to.equal(name.length > 14 ? 10 : 0)
      })
    )
  })
})

describe('dashboard: title of the tab (D13)', () => {
  it('counts the pods that wait, and marks trouble', () => {
    expect(titleOf(scene, 'busy')).to.equal('(2 waiting) apisix-drain')
    expect(titleOf(scene, 'bad')).to.equal('(! 2 waiting) apisix-drain')
    expect(titleOf({ ...scene, drains: [] }, 'bad')).to.equal('(!) apisix-drain')
    expect(titleOf({ ...scene, drains: [] }, 'well')).to.equal('apisix-drain')
    expect(titleOf(undefined, 'busy')).to.equal('apisix-drain')
  })
})

describe('dashboard: numbers that decide', () => {
  it('says what only-apisix would save: for how long hooks were held after the proof (DESIGN part 1)', () => {
    const [, , first] = lanes
    const held = (differs: object, verdict = first!.drain.verdict) => ({
      ...first!.drain,
      verdict,
      moments: {
        ...first!.drain.moments,
        hookAt: NOW,
        confirmedAt: NOW + 40,
        ackAt: NOW + 5040,
        goneAt: NOW + 6000,
        ...differs
      }
    })
    const saved = (...past: Snapshot['past']) => worthOf({ lags: [], past })[0]?.onlyApisixMs
    expect(saved()).to.equal(0)
    expect(saved(held({}))).to.equal(5000)
    expect(saved(held({}), held({ ackAt: NOW + 40 })), 'of each pod').to.equal(2500)
    expect(saved(held({ hookAt: NOW + 3040 })), 'its hook was late').to.equal(2000)
    expect(saved(held({ confirmedAt: null }, null)), 'not proved').to.equal(0)
    expect(
      saved(held({}, { ...first!.drain.verdict!, grade: 'observed' })),
      'its own sleep has to pass'
    ).to.equal(0)
  })

  it('has them for all, and for each workload', () => {
    const other = { ...scene.lags[0]!, uid: 'o', owner: 'StatefulSet/db', ms: 3 }
    const longest = Math.max(...scene.lags.map(({ ms }) => ms))
    const rows = worthOf({ ...scene, lags: [...scene.lags, other] })
    expect(rows.map(({ workload, drains, longestMs }) => [workload, drains, longestMs])).to.deep.equal([
      ['all workloads', 41, longest],
      ['shop / Deployment web', 40, longest],
      ['shop / StatefulSet db', 1, 3]
    ])
  })

  it('adds the decisions of the plugin over the gateways that have it', () => {
    expect(decidedBy([{ counts: null }])).to.equal(null)
    expect(decidedBy(scene.gateways)).to.deep.equal({ moved: 381, succeeded: 6, refused: 3, bypasses: 9 })
  })
})
