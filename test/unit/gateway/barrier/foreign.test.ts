import { expect } from 'chai'
import type { BarrierState } from '../../../../agent/gateway/apisix/barrier-wire.ts'
import { createForeignWatch, sightings, type Sightings } from '../../../../agent/gateway/barrier/foreign.ts'
import type { PodUid } from '../../../../agent/rules/drain/facts.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const OURS = 'apisix/drain'
const entry = (differs: Partial<BarrierState> = {}): BarrierState => ({
  uid: 'u',
  ip: '10.0.0.1',
  state: 'draining',
  ttl: 60,
  inflight: { requests: 0, long: 0 },
  bypasses: 0,
  ...differs
})

describe('sightings of entries that belong to no drain', () => {
  const look = (before: Sightings, now: number, ...entries: BarrierState[]) =>
    sightings(entries, before, { by: OURS, isWanted: uid => uid === 'wanted', now })
  const since = (seen: Sightings) => [...seen.values()].map(one => one.since)

  it('leave out the pods that this agent drains, whoever put the entry', () => {
    expect(
      look(new Map(), 0, entry({ uid: 'wanted' }), entry({ uid: 'wanted', by: 'other' }))
    ).to.have.length(0)
  })

  for (const by of [undefined, 'other/drain'])
    it(`keep the first time of an entry of ${by ?? 'an unknown writer'}, however often it is renewed`, () => {
      const first = look(new Map(), 1000, entry({ by }))
      expect(since(look(first, 31_000, entry({ by, ttl: 60 })))).to.deep.equal([1000])
    })

  it('begin anew if an agent of this release renews the entry', () => {
    const first = look(new Map(), 1000, entry({ by: OURS }))
    expect(since(look(first, 31_000, entry({ by: OURS, ttl: 60 })))).to.deep.equal([31_000])
  })

  it('keep the first time if no agent of this release renews it, although answers take their time', () => {
    const first = look(new Map(), 1000, entry({ by: OURS, ttl: 60 }))
    expect(since(look(first, 31_000, entry({ by: OURS, ttl: 30.9 })))).to.deep.equal([1000])
  })

  it('forget an entry that is gone, and tell the addresses of a pod apart', () => {
    const first = look(new Map(), 1000, entry({ port: 80 }))
    const second = look(first, 2000, entry({ port: 80 }), entry({ port: 81 }))
    expect(since(second)).to.deep.equal([1000, 2000])
    expect(since(look(look(second, 3000), 4000, entry({ port: 80 })))).to.deep.equal([4000])
  })
})

describe('the watch of one gateway for entries that no agent claims', () => {
  const TTL_MS = 60_000
  const rig = () => {
    const clock = manualClock()
    const list: BarrierState[] = []
    const lifted: PodUid[][] = []
    const may = { lift: false }
    const calls = { reads: 0, told: 0 }
    const watch = createForeignWatch({
      api: { entries: () => (calls.reads++, Promise.resolve([...list])) },
      clock,
      by: OURS,
      ttlMs: TTL_MS,
      isWanted: uid => uid === 'wanted',
      wanted: () => 1,
      mayLift: () => may.lift,
      lift: uids => lifted.push([...uids]),
      tell: () => calls.told++
    })
    /** Moves the clock. Then the gateway reports, and the answer to a read of its list arrives. */
    const after = async (ms: number, features = ['by']) => {
      clock.advance(ms)
      watch.heard({ features, held: { entries: list.length, generation: 1, late: 0 } })
      await Promise.resolve()
      await Promise.resolve()
    }
    return { list, lifted, may, calls, watch, after }
  }

  it('reads the list only if the gateway holds more than this agent wants, and six times in a ttl', async () => {
    const { list, calls, after } = rig()
    list.push(entry({ uid: 'wanted' }))
    await after(0)
    expect(calls.reads).to.equal(0)
    list.push(entry())
    for (let i = 0; i < 60; i++) await after(1000)
    expect(calls.reads).to.equal(6)
  })

  it('reads nothing from a plugin that does not keep who has put an entry', async () => {
    const { list, calls, watch, after } = rig()
    list.push(entry(), entry({ uid: 'v' }))
    for (let i = 0; i < 10; i++) await after(TTL_MS, ['successors'])
    expect([calls.reads, watch.count()]).to.deep.equal([0, 0])
  })

  it('counts an entry after half of the ttl, and no more once it is gone', async () => {
    const { list, calls, watch, after } = rig()
    list.push(entry({ uid: 'wanted' }), entry())
    await after(0)
    await after(TTL_MS / 2 - 1)
    expect(watch.count()).to.equal(0)
    await after(TTL_MS / 6)
    expect([watch.count(), calls.told]).to.deep.equal([1, 1])
    list.pop()
    await after(1)
    expect([watch.count(), calls.told]).to.deep.equal([0, 2])
  })

  it('removes them after the whole ttl, each uid once, and only if it may', async () => {
    const { list, lifted, may, after } = rig()
    list.push(entry({ port: 80 }), entry({ port: 81 }))
    await after(0)
    await after(TTL_MS)
    expect(lifted).to.deep.equal([])
    may.lift = true
    await after(TTL_MS / 6)
    expect(lifted).to.deep.equal([['u']])
    list.push(entry({ uid: 'later' }))
    await after(TTL_MS - 1)
    expect(lifted).to.deep.equal([['u'], ['u']])
  })
})
