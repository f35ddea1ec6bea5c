import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { commandsFor, quoted } from '../../../agent/dashboard/model/commands.ts'
import { count, formatMs } from '../../../agent/dashboard/model/format.ts'
import { differenceOf, holderRows, toneOf } from '../../../agent/dashboard/model/holder-rows.ts'
import {
  BOUNDS,
  histogramOf,
  placeOf,
  quantiles,
  seriesOf,
  within
} from '../../../agent/dashboard/model/lag-series.ts'
import { standingOf } from '../../../agent/dashboard/model/lanes.ts'
import { RANGE_MS } from '../../../agent/dashboard/model/view.ts'
import { sentenceOf } from '../../../agent/dashboard/model/sentence.ts'
import type { Snapshot } from '../../../agent/report/snapshot/snapshot.ts'
import { sceneOf } from '../../dashboard/snapshots.ts'

const NOW = 1_800_000_000_000
const scene = sceneOf({ now: NOW, live: 0, past: 3, holders: 3 })
const reach = { ...scene.agent.reach, barrier: { scheme: 'http', port: 9080 } }
const quiet: Snapshot = { ...scene, agent: { ...scene.agent, reach } }

describe('dashboard: words', () => {
  it('writes times in a readable form', () => {
    const written = [0, 0.42, 9.99, 41.4, 999.7, 1840, 25_000, 60_000, 185_000, 7_800_000, -5].map(formatMs)
    expect(written).to.deep.equal([
      '0 ms',
      '0.4 ms',
      '10 ms',
      '41 ms',
      '1 s',
      '1.84 s',
      '25 s',
      '60 s',
      '3 min 05 s',
      '2 h 10 min',
      '−5 ms'
    ])
    expect([count(1, 'pod'), count(1204, 'pod')]).to.deep.equal(['1 pod', '1,204 pods'])
  })

  const said = (differs: Partial<Snapshot>) => sentenceOf({ ...quiet, ...differs })

  it('reports that all is well only if it is', () => {
    expect(said({ holders: [] })).to.include({ level: 'well', head: 'All is well.' })
    expect(said({ holders: [] }).rest).to.match(/^3 gateways · no hook waits · last drain \d+ ms$/)
    expect(said({ drains: sceneOf({ now: NOW, live: 2, past: 0, holders: 0 }).drains })).to.include({
      level: 'busy',
      head: '2 pods on the way out.'
    })
  })

  it('names upstreams that only successors serve, once their owner is late', () => {
    const [holder] = quiet.holders
    const since = (ms: number) => [{ ...holder!, onSuccessors: { since: NOW - ms, nodes: ['10.0.0.9:80'] } }]
    expect(said({ holders: since(29_000) }).head).to.equal('All is well.')
    const late = said({ holders: since(31_000) })
    expect(late).to.include({
      level: 'busy',
      head: '1 upstream without a node that serves: the owner has not listed one.'
    })
    expect(late.rest).to.contain('1 upstream on successors')
  })

  it('is red within a minute if an owner or a gateway has stopped, and names it (D3)', () => {
    const [holder] = quiet.holders
    const missing = [{ node: '10.0.0.9:80', since: NOW - 45_000 }]
    const owner = {
      ...holder!,
      missing,
      behind: { since: NOW - 45_000, cause: 'owner' as const, gateways: [] }
    }
    expect(said({ holders: [owner] })).to.deep.equal({
      level: 'bad',
      head: `${owner.key} has been behind Kubernetes for 45 s.`,
      rest: 'its owner (ingress-controller-2) has not written 1 node. See Gateways and upstreams below.'
    })
    const why = 'a worker has applied revision 40, and not 41'
    const late = { gateway: 'apisix-2', since: NOW - 31_000, why, evidence: 'barrier' as const }
    const gateway = {
      ...holder!,
      behind: { since: late.since, cause: 'gateways' as const, gateways: [late] }
    }
    expect(said({ holders: [gateway, owner] }).rest).to.contain('1 other too')
    expect(said({ holders: [gateway] }).rest).to.match(
      /^apisix-2: a worker has applied revision 40, and not 41\./
    )
    const young = { ...owner, behind: { ...owner.behind, since: NOW - 29_000 } }
    expect(said({ holders: [young] }).level, 'an owner that is a little late').to.equal('well')
  })

  const [drain] = sceneOf({ now: NOW, live: 1, past: 0, holders: 0 }).drains
  const [one, ...others] = quiet.gateways
  const silent = (ms: number): Snapshot['gateways'][number] => ({
    ...one!,
    available: 'observed',
    why: 'no answer',
    barrier: { lastSuccessAt: NOW - ms, lastAttemptAt: NOW, problem: 'ECONNREFUSED' }
  })

  it('is red while a gateway does not answer, and names it (D1)', () => {
    const cut = said({ holders: [], gateways: [...others, silent(360_000)] })
    expect(cut).to.include({ level: 'bad', head: '2 of 3 gateways prove.' })
    expect(cut.rest).to.match(/^apisix-0 has not answered for 6 min 00 s\. Removals there are not proved\./)
    expect(said({ holders: [], gateways: [...others, silent(5000)] }).level, 'after 5 s').to.equal('bad')
  })

  it('is red while a gateway gives weaker evidence than its barrier, unless the agent uses none', () => {
    const weak: Snapshot['gateways'][number] = {
      ...one!,
      available: 'observed',
      why: 'its worker 3 is unfit'
    }
    const gateways = [...others, weak]
    expect(said({ holders: [], gateways }).rest).to.contain(
      'apisix-0 can only be observed: its worker 3 is unfit'
    )
    const without = { ...quiet.agent, reach: { ...reach, barrier: null } }
    expect(said({ holders: [], gateways, agent: without }).level).to.equal('well')
    expect(said({ holders: [], gateways: [...others, { ...weak, terminating: true }] }).level).to.equal(
      'well'
    )
  })

  it('names gateways that are not Ready: their reports do not count', () => {
    const starting = said({ holders: [], gateways: [...others, { ...one!, ready: false }] })
    expect(starting.level).to.equal('busy')
    expect(starting.head).to.equal('1 gateway not Ready: no removal is proved until it is, or has ended.')
    expect(starting.rest).to.match(/^3 gateways · .* · 1 of them not Ready$/)
  })

  it('stays red for an hour after a pod that was not proved (D2)', () => {
    const goneAt = (ms: number): Snapshot['past'][number] => ({
      ...drain!,
      phase: 'gone',
      moments: { ...drain!.moments, ackAt: null, goneAt: NOW - ms }
    })
    expect(said({ holders: [], unproved: [goneAt(3_590_000)] })).to.include({
      level: 'bad',
      head: 'In the last hour, the removal of 1 pod was not proved in time.'
    })
    const why = 'waiting (apisix-0: no barrier was read (5 s), and more)'
    expect(said({ holders: [], unproved: [{ ...goneAt(1000), why }] }).rest).to.match(
      /: apisix-0: no barrier was read \(5 s\), and more$/
    )
    expect(said({ holders: [], unproved: [goneAt(3_610_000)] }).level).to.equal('well')
    const unlisted = { ...goneAt(1000), unlisted: true }
    expect(standingOf(unlisted)).to.equal('unlisted')
    expect(standingOf({ ...unlisted, phase: 'draining' })).to.equal('waiting')
    expect(said({ holders: [], unproved: [unlisted] }).level, 'nothing led to it').to.equal('well')
  })

  it('is not red for a last endpoint that is held as planned (D10)', () => {
    const kept = { ...drain!, verdict: { ...drain!.verdict!, lastEndpoint: true } }
    const held = said({ holders: [], drains: [kept] })
    expect(held.level).to.equal('busy')
    expect(held.rest).to.contain('1 last endpoint held until another pod serves')
    expect(said({ holders: [], past: [{ ...kept, phase: 'gone' }] }).level).to.equal('well')
  })

  it('puts the worst first', () => {
    const [drain] = sceneOf({ now: NOW, live: 1, past: 0, holders: 0 }).drains
    const expired = { ...drain!, phase: 'expired' as const }
    const vouch = { ok: false as const, why: 'no gateway is known' }
    expect(said({ drains: [expired] }).head).to.equal(
      'In the last hour, the removal of 1 pod was not proved in time.'
    )
    expect(said({ drains: [expired], agent: { ...quiet.agent, vouch } })).to.include({
      level: 'bad',
      head: 'The agent cannot vouch for an answer.'
    })
    const stale = { ...quiet.watches[0]!, state: 'stale' as const, problem: 'closed' }
    expect(said({ watches: [stale] })).to.include({ level: 'bad', rest: 'closed' })
    expect(said({ inventory: { ...quiet.inventory, problem: 'status 401' } }).level).to.equal('bad')
    const ghost = (since: number) => [{ ...quiet.holders[0]!, ghosts: [{ node: '10.0.0.1:80', since }] }]
    expect(said({ holders: ghost(1) }).head).to.equal('Ghosts are left.')
    expect(said({ holders: ghost(NOW - 29_000) }).level, 'its owner is at work').to.equal('well')
  })
})

describe('dashboard: lag', () => {
  const sample = (ms: number, at = NOW) => ({ at, ms, grade: 'barrier' as const })

  it('has the quantiles of the available samples', () => {
    expect(quantiles([])).to.equal(undefined)
    const hundred = Array.from({ length: 100 }, (_, i) => i + 1)
    expect(quantiles(hundred)).to.deep.equal({ p50: 50, p99: 99, max: 100 })
    expect(quantiles([7])).to.deep.equal({ p50: 7, p99: 7, max: 7 })
  })

  it('law: every sample is in exactly one bar, and within the time of the points', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.integer({ min: 0, max: 200_000 }), after: fc.nat(1e7) }), {
          minLength: 1
        }),
        list => {
          const samples = list.map(({ ms, after }) => sample(ms, NOW + after))
          expect(histogramOf(samples).reduce((sum, bar) => sum + bar.samples, 0)).to.equal(samples.length)
          const now = NOW + 1e7
          const [at, , , max] = seriesOf(within(samples, RANGE_MS['24 h'], now), RANGE_MS['24 h'], now)
          expect(at.length).to.be.within(60, 62)
          expect(at).to.deep.equal(at.toSorted((a, b) => a - b))
          expect(Math.max(...max.map(Number))).to.equal(Math.max(...samples.map(({ ms }) => ms)))
        }
      )
    )
  })

  it('ends at now, and has gaps where nothing was measured (D9)', () => {
    const hour = RANGE_MS['1 h']
    const samples = [sample(30, NOW - 3_000_000), sample(50, NOW - 600_000), sample(90, NOW - 5_000_000)]
    const shown = within(samples, hour, NOW)
    expect(shown.map(({ ms }) => ms)).to.deep.equal([30, 50])
    const [at, p50, p99, max] = seriesOf(shown, hour, NOW)
    expect(at.at(-1)! * 1000).to.be.within(NOW - hour / 60, NOW)
    expect(at[0]! * 1000).to.be.within(NOW - hour - hour / 60, NOW - hour + hour / 60)
    for (const values of [p50, p99, max]) {
      expect(values.filter(value => value !== null)).to.deep.equal([30, 50])
      expect(values.slice(values.indexOf(30) + 1, values.indexOf(50)).every(v => v === null)).to.equal(true)
    }
    const busy = shown.map(one => ({ ...one, idleMs: one.ms === 30 ? null : 9000 }))
    expect(seriesOf(busy, hour, NOW)[4].filter(value => value !== null)).to.deep.equal([9000])
    // The points keep their times while the clock moves.
    const [later] = seriesOf(shown, hour, NOW + 1000)
    expect(later.filter(time => at.includes(time)).length).to.be.at.least(at.length - 2)
  })

  it('places a duration at its bar', () => {
    expect(placeOf(0)).to.equal(0)
    expect(placeOf(1e9)).to.equal(1)
    const i = BOUNDS.indexOf(5000)
    expect(placeOf(5000)).to.be.closeTo((i + 1) / BOUNDS.length, 1e-9)
    expect(placeOf(3500)).to.be.closeTo((i + 0.5) / BOUNDS.length, 1e-9)
  })
})

describe('dashboard: holders', () => {
  const holders = sceneOf({ now: NOW, live: 0, past: 0, holders: 1000 }).holders

  it('shows troubled holders first, and keeps the order otherwise', () => {
    const rows = holderRows(holders, 'all', '')
    expect(rows).to.have.length(1000)
    expect(rows.slice(0, 3).map(({ key }) => key)).to.deep.equal([
      'upstreams/web-3',
      'upstreams/web-7',
      'routes/web-9/upstream'
    ])
  })

  it('are red only if a difference lasts longer than owners and gateways need', () => {
    const [one] = holders
    const tone = (differs: object) => toneOf({ ...one!, ...differs }, NOW)
    for (const kind of ['ghosts', 'missing', 'notReady']) {
      expect(tone({ [kind]: [{ node: 'a:1', since: NOW - 29_000 }] }), kind).to.equal('busy')
      expect(tone({ [kind]: [{ node: 'a:1', since: NOW - 31_000 }] }), kind).to.equal('bad')
    }
    expect(tone({ onSuccessors: { since: NOW - 31_000, nodes: [] } })).to.equal('bad')
  })

  it('finds by every word, in any column', () => {
    expect(holderRows(holders, 'ghosts', '')).to.have.length(2)
    expect(holderRows(holders, 'in order', '')).to.have.length(994)
    expect(holderRows(holders, 'on successors', '')).to.have.length(2)
    expect(differenceOf(holderRows(holders, 'on successors', '')[0]!, NOW)).to.equal(
      'no node that serves (95 s), successors: 10.8.9.7:8080'
    )
    expect(holderRows(holders, 'missing', '')).to.have.length(2)
    expect(holderRows(holders, 'all', 'WEB-77 unknown').map(({ key }) => key)).to.deep.equal([
      'upstreams/web-77',
      'upstreams/web-771',
      'upstreams/web-773',
      'upstreams/web-775',
      'upstreams/web-777',
      'upstreams/web-779'
    ])
    expect(holderRows(holders, 'all', '10.5.2.7').length).to.be.above(0)
  })
})

describe('dashboard: commands', () => {
  const [drain] = sceneOf({ now: NOW, live: 1, past: 0, holders: 0 }).drains
  const reach = {
    admin: 'http://admin:9180',
    control: { port: 9090 },
    barrier: { scheme: 'https', port: 9092 }
  }

  it('query the gateway that is behind, then the holder, then Kubernetes', () => {
    const lines = commandsFor(drain!, quiet.gateways, reach).map(({ line }) => line)
    expect(lines).to.deep.equal([
      `curl -s -H "Authorization: Bearer $BARRIER_TOKEN" https://10.0.9.3:9092/v1/barrier/inflight -d '{"uids":["live-0"]}'`,
      'curl -s http://10.0.9.3:9090/v1/upstreams | grep -F 10.1.0.7',
      'curl -s -H "X-API-KEY: $ADMIN_KEY" http://admin:9180/apisix/admin/upstreams/web-1',
      `kubectl -n shop get pod ${drain!.pod} -o yaml`
    ])
    const v6 = [{ name: 'apisix-2', ip: 'fd00::9' }]
    const [first] = commandsFor(drain!, v6, { ...reach, barrier: null })
    expect(first?.line).to.include("'http://[fd00::9]:9090/v1/upstreams'")
  })

  it('law: a shell reads a quoted word back unchanged, and runs none of it', () => {
    const hostile = fc.string({ unit: fc.constantFrom(...`'"$\`;&|\\ \n#a(){}<>*~!`.split('')) })
    fc.assert(
      fc.property(hostile, text => {
        const read = execFileSync('sh', ['-c', `printf %s ${quoted(text)}`], { encoding: 'utf8' })
        expect(read).to.equal(text)
      }),
      { numRuns: 60, examples: [['$(touch /tmp/no)'], ["'; rm -rf /"], ['']] }
    )
  })
})
