import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { commandsFor, quoted } from '../../../agent/dashboard/model/commands.ts'
import { count, formatMs } from '../../../agent/dashboard/model/format.ts'
import { lastHourOf, sentenceOf } from '../../../agent/dashboard/model/headline.ts'
import {
  arriving,
  figureNote,
  lagFigures,
  quantiles,
  seriesOf,
  within
} from '../../../agent/dashboard/model/lags.ts'
import { lanesOf, standingOf } from '../../../agent/dashboard/model/lanes.ts'
import {
  differenceOf,
  holderRows,
  lastIn,
  lastOut,
  toneOf
} from '../../../agent/dashboard/model/upstreams.ts'
import { RANGE_MS } from '../../../agent/dashboard/model/view.ts'
import { gatewayState } from '../../../agent/dashboard/model/words.ts'
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
})

describe('dashboard: health now, and the last hour', () => {
  const said = (differs: Partial<Snapshot>) => sentenceOf({ ...quiet, holders: [], ...differs })
  const [holder] = quiet.holders
  const [drain] = sceneOf({ now: NOW, live: 1, past: 0, holders: 0 }).drains
  const [one, ...others] = quiet.gateways
  const silent = (ms: number): Snapshot['gateways'][number] => ({
    ...one!,
    available: 'observed',
    why: 'no answer',
    barrier: { lastSuccessAt: NOW - ms, lastAttemptAt: NOW, problem: 'ECONNREFUSED' }
  })
  const goneAt = (ms: number): Snapshot['past'][number] => ({
    ...drain!,
    phase: 'gone',
    moments: { ...drain!.moments, ackAt: null, goneAt: NOW - ms }
  })
  const lacks = { gateway: 'apisix-2', why: 'has revision 40, not 41', evidence: 'barrier' as const }
  const late = (ms: number, cause: 'owner' | 'gateways' = 'owner') => ({
    ...holder!,
    service: 'shop/web',
    missing: cause === 'owner' ? [{ node: '10.0.0.9:80', since: NOW - ms }] : [],
    behind: {
      since: NOW - ms,
      owner: cause === 'owner' ? NOW - ms : null,
      cause,
      gateways: cause === 'owner' ? [] : [{ ...lacks, since: NOW - ms }]
    }
  })
  const unserved = (nodes: readonly string[]) => ({
    ...holder!,
    service: 'shop/web',
    onSuccessors: { since: NOW, nodes }
  })
  const weak: Snapshot['gateways'][number] = { ...one!, available: 'observed', why: 'its worker 3 is unfit' }
  const stale = { ...quiet.watches[0]!, state: 'stale' as const, problem: 'closed' }
  const hooks = quiet.inventory.hooks
  const web = `shop/web (${holder!.key})`
  const unsafe = (kind: 'without' | 'early') => ({
    ...quiet.inventory,
    hooks: {
      ...hooks,
      [kind]: [{ name: 'shop/Deployment/web', pods: 2 }],
      counts: { ...hooks.counts, [kind]: 1 }
    }
  })

  const states: readonly (readonly [
    what: string,
    differs: Partial<Snapshot>,
    level: string,
    head: string,
    rest?: string
  ])[] = [
    ['nothing', {}, 'well', 'All is well.', ''],
    [
      'a gateway does not answer',
      { gateways: [...others, silent(360_000)], drains: [{ ...drain!, deadline: NOW + 23_000 }] },
      'bad',
      '1 of 3 gateways unreachable: rollouts wait up to 23 s.',
      'apisix-0 last answered 6 min 00 s ago: ECONNREFUSED. Also: 1 pod on the way out.'
    ],
    [
      'a gateway is unfit',
      { gateways: [...others, weak] },
      'bad',
      '1 of 3 gateways cannot prove.',
      'apisix-0 can only be observed: its worker 3 is unfit.'
    ],
    ['a dead watch', { watches: [stale] }, 'bad', `The watch of ${stale.kind} is not live.`, 'closed'],
    [
      'an unreadable inventory',
      { inventory: { ...quiet.inventory, problem: 'status 401' } },
      'bad',
      'The holders cannot be read.'
    ],
    [
      'an owner that has stopped',
      { holders: [late(45_000)] },
      'bad',
      `${web} has been behind Kubernetes for 45 s.`,
      'its owner (ingress-controller-2) has not written 1 node.'
    ],
    [
      'a worker whose watch of etcd is dead',
      { holders: [late(31_000, 'gateways')] },
      'bad',
      `${web} has been behind Kubernetes for 31 s.`,
      'apisix-2: has revision 40, not 41.'
    ],
    [
      'an owner that is slow',
      { holders: [late(6000)] },
      'busy',
      `${web} has been behind Kubernetes for 6 s.`
    ],
    ['an owner at work', { holders: [late(2000)] }, 'well', 'All is well.'],
    [
      'only successors serve',
      { holders: [unserved(['10.0.0.9:80'])] },
      'busy',
      `${web} lists no pod that serves.`,
      'Gateways with the plugin use its successors 10.0.0.9:80 until the owner has listed one.'
    ],
    [
      'a gateway that starts',
      { gateways: [...others, { ...one!, ready: false }] },
      'busy',
      '1 gateway not Ready: its barrier still has to confirm each removal.'
    ],
    [
      'a pod that is held for long',
      { drains: [{ ...drain!, moments: { ...drain!.moments, seenAt: NOW - 12_000 } }] },
      'busy',
      '1 pod on the way out, the longest for 12 s.'
    ],
    [
      'a workload without a hook',
      { inventory: unsafe('without') },
      'busy',
      'shop/Deployment/web has no hook.'
    ],
    [
      'a container that ends early',
      { inventory: unsafe('early') },
      'busy',
      'shop/Deployment/web has a container that ends before the answer.'
    ]
  ]
  for (const [what, differs, level, head, rest] of states)
    it(`says of ${what}: ${head}`, () => {
      expect(said(differs)).to.include({ level, head, ...(rest !== undefined && { rest }) })
    })

  it('is the same with and without an unproved drain of five minutes ago: only the line beside it differs (E1)', () => {
    const now = { holders: [late(45_000)], watches: [stale] }
    const after = {
      ...now,
      past: [{ ...goneAt(300_000), why: 'waiting (apisix-0: no barrier was read (5 s), and more)' }]
    }
    expect(said(after)).to.deep.equal(said(now))
    expect(said(now).rest).to.contain('Also: shop/web')
    expect(lastHourOf({ ...quiet, past: [] })).to.deep.equal({
      level: 'well',
      text: 'In the last hour, no pod ended.',
      drain: ''
    })
    const { level, text } = lastHourOf({ ...quiet, ...after })
    expect(level).to.equal('bad')
    expect(text).to.match(
      /^In the last hour, 1 of 1 pod not proved in time, the last shop\/web-\S+ at [\d:]+: apisix-0: no barrier was read \(5 s\), and more$/
    )
  })

  it('counts in the last hour what was proved, forgets after it, and says if the agent is younger (D2)', () => {
    const hour = (differs: Partial<Snapshot>) => lastHourOf({ ...quiet, ...differs })
    expect(hour({})).to.include({ level: 'well', text: 'In the last hour, 3 pods proved.' })
    const unproved = (ms: number, more = {}) => hour({ past: [{ ...goneAt(ms), ...more }] }).level
    expect(unproved(3_590_000)).to.equal('bad')
    expect(unproved(3_610_000)).to.equal('well')
    const unlisted = { unlisted: true }
    expect(standingOf({ ...goneAt(1000), ...unlisted })).to.equal('unlisted')
    expect(standingOf({ ...drain!, ...unlisted })).to.equal('waiting')
    expect(unproved(1000, unlisted), 'nothing led to it').to.equal('well')
    const kept = { verdict: { ...drain!.verdict!, lastEndpoint: true } }
    expect(unproved(1000, kept), 'held as planned').to.equal('well')
    const [first] = quiet.past
    expect(hour({ past: [{ ...first!, afterAck: 2 }] }).text).to.match(
      / got 2 requests after its answer: look at/
    )
    const observed = { ...first!, verdict: { ...first!.verdict!, grade: 'observed' as const } }
    expect(hour({ past: [observed] })).to.include({
      level: 'busy',
      text: 'In the last hour, 1 of 1 pod only observed.'
    })
    const agent = { ...quiet.agent, startedAt: NOW - 180_000 }
    expect(hour({ agent, past: [] }).text).to.equal('Since this agent started 3 min 00 s ago, no pod ended.')
  })

  it('is not red for a gateway that ends, for weaker evidence if no barrier is used, or for a last endpoint', () => {
    expect(said({ gateways: [...others, { ...silent(9000), terminating: true }] }).level).to.equal('well')
    const agent = { ...quiet.agent, reach: { ...reach, barrier: null } }
    expect(said({ gateways: [...others, weak], agent }).level).to.equal('well')
    const kept = said({ drains: [{ ...drain!, verdict: { ...drain!.verdict!, lastEndpoint: true } }] })
    expect(kept.level).to.equal('busy')
    expect(kept.facts).to.equal('3 gateways · 1 hook held · 1 last endpoint held until another pod serves')
  })

  it('calls a gateway unreachable only while its last call fails (E6)', () => {
    expect(gatewayState(silent(100))).to.deep.equal({ tone: 'bad', label: 'unreachable' })
    const answers = { lastSuccessAt: NOW, lastAttemptAt: NOW, problem: 'its worker 3 is unfit' }
    expect(gatewayState({ ...one!, barrier: answers }).label).to.equal('ready')
    expect(gatewayState({ ...one!, control: silent(100).barrier }).label, 'the barrier answers').to.equal(
      'ready'
    )
  })
})

describe('dashboard: lag', () => {
  const sample = (ms: number, at = NOW) => ({ at, ms })

  it('has the quantiles of the available samples', () => {
    expect(quantiles([])).to.equal(undefined)
    const hundred = Array.from({ length: 100 }, (_, i) => i + 1)
    expect(quantiles(hundred)).to.deep.equal({ n: 100, p50: 50, p99: 99, max: 100 })
    expect(quantiles([7])).to.deep.equal({ n: 1, p50: 7, p99: 7, max: 7 })
  })

  it('is three figures: out and in of the pods in the range, and the oldest change that an owner owes now (E4)', () => {
    const { lags, arrivals, holders } = sceneOf({ now: NOW, live: 0, past: 60, holders: 1000 })
    const figures = lagFigures({ lags, arrivals, holders }, 300_000, NOW)
    expect(figures.out!.n).to.equal(lags.filter(({ at }) => at > NOW - 300_000).length)
    expect(figures.in!.n).to.be.within(1, arrivals.length - 1)
    expect(figures.owners.map(({ key }) => key)).to.deep.equal(['routes/web-9/upstream', 'upstreams/web-509'])
    expect(figureNote({ n: 99, p50: 30, p99: 90, max: 90 }, '1 h')).to.equal('99 pods in 1 h · longest 90 ms')
    expect(figureNote({ n: 100, p50: 30, p99: 80, max: 90 }, '1 h')).to.equal(
      '100 pods in 1 h · p99 80 ms · longest 90 ms'
    )
    expect(lagFigures({ lags, arrivals, holders: [] }, 1, NOW).out).to.equal(undefined)
  })

  it('law: every sample is within the time of the points', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.integer({ min: 0, max: 200_000 }), after: fc.nat(1e7) }), {
          minLength: 1
        }),
        list => {
          const samples = list.map(({ ms, after }) => sample(ms, NOW + after))
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
    // The points keep their times while the clock moves.
    const [later] = seriesOf(shown, hour, NOW + 1000)
    expect(later.filter(time => at.includes(time)).length).to.be.at.least(at.length - 2)
  })

  it('names the pods that are Ready and not routed, and forgets those that ended or were given up', () => {
    const { arrivals, ...now } = sceneOf({ now: NOW, live: 1, past: 5, holders: 0 })
    const late = (uid: string, ms: number) => ({ ...arrivals[0]!, uid, readyAt: NOW - ms })
    const all = [
      late('new', 5000),
      late('old', 90_000),
      late('given up', 121_000),
      late(now.drains[0]!.uid, 9000),
      late('past-3', 9000)
    ]
    expect(arriving({ ...now, arrivals: all }).map(({ uid }) => uid)).to.deep.equal(['old', 'new'])
    expect(arriving({ ...now, arrivals: arrivals.slice(1) })).to.deep.equal([])
  })
})

describe('dashboard: holders', () => {
  const holders = sceneOf({ now: NOW, live: 0, past: 0, holders: 1000 }).holders

  it('shows the oldest change first, then other differences, and all only on demand', () => {
    const rows = holderRows(holders, 'all', '')
    expect(rows).to.have.length(1000)
    expect(rows.slice(0, 4).map(({ behind }) => behind?.cause)).to.deep.equal([
      'owner',
      'owner',
      'gateways',
      'gateways'
    ])
    expect(rows.slice(4, 6).map(({ key }) => key)).to.deep.equal(['upstreams/web-3', 'upstreams/web-7'])
    expect(holderRows(holders, 'differing', '')).to.deep.equal(rows.slice(0, 8))
  })

  it('have one clock of each gateway: the slowest in the cell, and each on demand (E3)', () => {
    const arrival = {
      ...sceneOf({ now: NOW, live: 0, past: 30, holders: 0 }).arrivals[0]!,
      holders: ['upstreams/web-1'],
      readyAt: 1000,
      routedAt: 1727,
      gateways: [0, 1, 2].map(g => ({ name: `apisix-${g}`, at: 1701 + 13 * g }))
    }
    expect(lastIn([arrival, { ...arrival, readyAt: 0 }]).get('upstreams/web-1')).to.deep.equal({
      ms: 727,
      each: 'apisix-0 701 ms, apisix-1 714 ms, apisix-2 727 ms'
    })
    expect(lastIn([{ ...arrival, routedAt: null }]).size).to.equal(0)
    const lanes = lanesOf([], sceneOf({ now: NOW, live: 0, past: 30, holders: 0 }).past)
    const [lane] = lanes
    const to = lane!.drain.gateways.map(({ at }) => at! - lane!.start)
    expect(lastOut(lanes).get('upstreams/web-1')!.ms).to.be.closeTo(Math.max(...to), 0.01)
  })

  it('are red only if a difference lasts longer than owners and gateways need', () => {
    const [one] = holders
    const tone = (differs: object) => toneOf({ ...one!, ...differs }, NOW)
    for (const ms of [29_000, 31_000]) {
      const expected = ms < 30_000 ? 'busy' : 'bad'
      expect(tone({ ghosts: [{ node: 'a:1', since: NOW - ms }] })).to.equal(expected)
      expect(tone({ behind: { since: NOW - ms, owner: NOW - ms, cause: 'owner', gateways: [] } })).to.equal(
        expected
      )
    }
    expect(tone({ onSuccessors: { since: NOW - 31_000, nodes: [] } })).to.equal('bad')
  })

  it('finds by every word, in any column', () => {
    const lost = holders.find(({ onSuccessors }) => onSuccessors !== null)!
    expect(differenceOf(lost, NOW)).to.equal('no node that serves (95 s), successors: 10.8.9.7:8080')
    expect(holderRows(holders, 'differing', 'WEB-77 unknown').map(({ key }) => key)).to.deep.equal([
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
