import { expect } from 'chai'
import type { BarrierState } from '../../../../agent/gateway/apisix/barrier-wire.ts'
import type { DesiredEntry } from '../../../../agent/gateway/barrier/desired-entry.ts'
import { createEntryTable } from '../../../../agent/gateway/barrier/entry-table.ts'
import type { PodUid } from '../../../../agent/rules/drain/facts.ts'

const TTL = 30_000
const A = 'a' as PodUid

const entry = (differs: Partial<DesiredEntry> = {}): DesiredEntry => ({
  uid: A,
  nodes: ['10.0.0.1'],
  state: 'sealed',
  watch: true,
  ...differs
})
const state = (differs: Partial<BarrierState> = {}): BarrierState => ({
  uid: A,
  ip: '10.0.0.1',
  state: 'sealed',
  ttl: 30,
  bypasses: 0,
  late: 0,
  inflight: { requests: 0, long: 0 },
  ...differs
})
const at = (now: number) => ({ at: now, countedAt: now, instance: 'i', fit: true })

describe('the entries of one gateway', () => {
  const rig = (first: DesiredEntry = entry()) => {
    const desired = new Map([[first.uid, first]])
    const table = createEntryTable(TTL, () => desired, 0)
    const put = (now: number, states: BarrierState[], refused: readonly string[] = [], isStale = false) => {
      const due = table.due(now)
      table.sent(due, now)
      const answer = { entries: states, refused: new Set(refused), why: 'no room', sentAt: now }
      table.put(due, answer, at(now), isStale)
    }
    return { desired, table, put }
  }

  it('are due when new, when changed, and after a third of their ttl', () => {
    const { desired, table, put } = rig(entry({ state: 'draining' }))
    expect(table.due(0)).eql([entry({ state: 'draining' })])
    put(0, [state({ state: 'draining' })])
    expect(table.due(1)).eql([])
    expect(table.renewAt()).equal(TTL / 3)
    desired.set(A, entry())
    expect(table.due(1)).eql([entry()])
    put(1, [state()])
    expect(table.due(2)).eql([])
    expect(table.due(1 + TTL / 3)).eql([entry()])
  })

  it('tell an answer with the next put, or once 500 ms later: no seal waits for it', () => {
    const answers = new Map<PodUid, { readonly at: number; readonly text: string }>()
    const B = 'b' as PodUid
    const desired = new Map([[A, entry()]])
    const table = createEntryTable(TTL, () => desired, 0, answers)
    const put = (now: number, refused: readonly string[] = []) => {
      const due = table.due(now)
      table.sent(due, now)
      const entries = due.map(({ uid }) => state({ uid }))
      const answer = { entries, refused: new Set(refused), why: 'no room', sentAt: now }
      table.put(due, answer, at(now), false)
      return due.map(({ uid }) => uid)
    }
    put(0)
    answers.set(A, { at: 100, text: 'x' })
    expect(table.isUntold()).equal(true)
    expect(table.renewAt()).equal(600)
    expect(table.due(599)).eql([])
    expect(put(600)).eql([A])
    expect(table.isUntold()).equal(false)
    expect(put(2000)).eql([])

    desired.set(B, entry({ uid: B }))
    put(3000)
    answers.set(B, { at: 3100, text: 'y' })
    const C = 'c' as PodUid
    desired.set(C, entry({ uid: C }))
    expect(put(3101)).eql([C, B])
    answers.set('no entry' as PodUid, { at: 3102, text: 'z' })
    expect(put(9000)).eql([])

    answers.set(C, { at: 9001, text: 'z' })
    expect(put(9600, [C]), 'no room').eql([C])
    expect(table.isUntold(), 'it goes with the next try').equal(false)
  })

  it('count only if workers have looked for all ways to the pod', () => {
    const says = (asked: number) => {
      const none = { places: 0, hidden: 0, sole: [], succeeded: [], others: [], cut: 0 }
      return state({ word: { said: 1, asked: 1, ...none, ways: { asked, found: [], more: 0 }, tag: 't' } })
    }
    const ways = ['10.96.0.1', 'web.shop']
    const { desired, table, put } = rig(entry({}))
    put(0, [says(0)])
    expect(table.reading(A)?.word?.complete).equal(true)
    desired.set(A, entry({ ways }))
    expect(table.due(1), 'a question more').eql([entry({ ways })])
    put(1, [says(1)])
    expect(table.reading(A)?.word?.complete).equal(false)
    table.reported([entry({ ways })], { entries: [says(2)] }, at(2), 2)
    expect(table.reading(A)?.word?.complete).equal(true)
  })

  it('that a gateway refuses to seal are due again once its workers say the same as before', () => {
    const says = (said: number) => {
      const none = { places: 0, hidden: 0, sole: [], succeeded: [], others: [], cut: 0 }
      const word = { said, asked: 2, ...none, ways: { asked: 0, found: [], more: 0 } }
      return state({ state: 'draining', word: { ...word, ...(said === 2 && { tag: 't' }) } })
    }
    const { desired, table, put } = rig(entry({ state: 'draining' }))
    put(0, [says(2)])
    desired.set(A, entry({ sealIf: ['t'] }))
    put(1, [says(1)])
    expect(table.due(2), 'it would refuse again').eql([])
    table.reported([entry()], { entries: [says(2)] }, at(3), 2)
    expect(table.due(3)).eql([entry({ sealIf: ['t'] })])
    desired.set(A, entry({ sealIf: ['t'] }))
    expect(table.due(3), 'decided again meanwhile').eql([entry({ sealIf: ['t'] })])
    put(4, [says(2)], [A])
    expect(table.due(5), 'no room').eql([])
    put(3000, [{ ...says(1), state: 'sealed' }])
    expect(table.due(3001)).eql([])
    expect(table.reading(A)?.word, 'by the words that were judged').include({ complete: true })

    const other = rig(entry({ state: 'draining' }))
    other.put(0, [says(2)])
    other.desired.set(A, entry({ sealIf: ['t'], ways: ['port/1'] }))
    other.put(1, [{ ...says(1), state: 'sealed' }])
    expect(other.table.reading(A)?.word, 'it asks more').include({ complete: false })
  })

  it('do not change once another agent has sealed them', () => {
    const { desired, table, put } = rig(entry({ state: 'draining' }))
    put(0, [state({ state: 'draining' })])
    table.reported([entry()], { entries: [state()] }, at(5), 5)
    expect(table.reading(A)).include({ entry: 'sealed', readAfterSeal: false })
    desired.set(A, entry({ sealIf: ['t1'] }))
    expect(table.due(6)).eql([])
    table.reported([entry()], { entries: [state()] }, at(7), 7)
    expect(table.reading(A)).include({ readAfterSeal: true })
    desired.set(A, entry({ nodes: ['10.0.0.1', '10.0.0.2'] }))
    expect(table.reading(A), 'a report on fewer addresses proves nothing').equal(undefined)
  })

  it('that are sealed are due at once for their first successors, for a lost one, and for one that no entry names; and else with the next renewal', () => {
    const { desired, table, put } = rig()
    put(0, [state()])
    const naming = (nodes: readonly string[], uid = A) =>
      entry({ uid, successors: nodes.length > 0 ? { '80': nodes } : {} })
    const becomes = (...next: DesiredEntry[]) => {
      for (const one of next) desired.set(one.uid, one)
      return table.due(2)
    }
    const [none, nine, both, eight] = [[], ['10.0.0.9:80'], ['10.0.0.9:80', '10.0.0.8:80'], ['10.0.0.8:80']]
    expect(becomes(naming(nine)), 'the first').eql([naming(nine)])
    put(1, [state()])
    expect(table.due(2)).eql([])
    const B = 'b' as PodUid
    expect(becomes(naming(both), naming(both, B)), 'a new entry names it').eql([naming(both, B)])
    put(1, [state(), state({ uid: B })])
    expect(table.due(2)).eql([])
    expect(table.due(table.renewAt())).eql([naming(both), naming(both, B)])
    const [seven, six] = [
      [...both, '10.0.0.7:80'],
      [...both, '10.0.0.7:80', '10.0.0.6:80']
    ]
    expect(becomes(naming(seven), naming(seven, B)), 'one for one: that with the fewest names').eql([
      naming(seven)
    ])
    expect(becomes(naming(six), naming(six, B)), 'two for two').eql([naming(six), naming(six, B)])
    put(1, [state(), state({ uid: B })])
    expect(table.due(2)).eql([])
    expect(becomes(naming(eight)), 'others are lost').eql([naming(eight)])
    expect(becomes(naming(none)), 'all').eql([naming(none)])
  })

  it('wait with a lost successor that has an entry of its own, for as long as it has', () => {
    for (const nodes of [['10.0.0.9'], ['10.0.0.9:80']]) {
      const { desired, table, put } = rig(entry({ successors: { '80': ['10.0.0.9:80', '10.0.0.8:80'] } }))
      put(0, [state()])
      const ending = entry({ uid: 'b' as PodUid, nodes })
      desired.set(ending.uid, ending)
      desired.set(A, entry({ successors: { '80': ['10.0.0.8:80'] } }))
      expect(table.due(1).map(({ uid }) => uid)).eql(['b'])
      desired.delete(ending.uid)
      expect(table.due(1).map(({ uid }) => uid)).eql(['a'])
    }
  })

  it('say that there are no successors only after this agent has named some, or with a renewal', () => {
    const [none, some] = [entry({ successors: {} }), entry({ successors: { '80': ['10.0.0.9:80'] } })]
    const { desired, table, put } = rig(none)
    const tells = (now: number) => table.tellsSuccessors(none, now)
    expect(tells(0), 'a first put').equal(false)
    expect(table.tellsSuccessors(some, 0)).equal(true)
    put(0, [state({ state: 'draining' })])
    expect(tells(1)).equal(false)
    expect(tells(table.renewAt())).equal(true)
    expect(table.tellsSuccessors(entry(), table.renewAt()), 'it does not know').equal(false)
    desired.set(A, some)
    put(1, [state({ state: 'draining' })])
    expect(tells(2), 'they were its own').equal(true)
    table.failed('no answer', 2)
    expect(tells(3), 'the gateway may still have them').equal(true)
    desired.set(A, none)
    put(3, [], [], true)
    expect(tells(4), 'it may have been put before a restart').equal(true)
    put(4, [state({ state: 'draining' })])
    expect(tells(5), 'it has taken them back').equal(false)
    desired.set(A, some)
    put(5, [state({ state: 'draining' })])
    table.lifted([A])
    expect(tells(6), 'the entry is gone').equal(false)
    desired.set(A, entry({ ...some, sealIf: ['t'] }))
    put(6, [state({ state: 'draining' })])
    table.restarted('j')
    expect(tells(7), 'the gateway is another one').equal(false)
  })

  describe('times of the seal and of the last request', () => {
    const busy = state({ sealedFor: 0.1, inflight: { requests: 1, long: 0 } })

    it('are those of the gateway, whenever the agent asks', () => {
      const { table, put } = rig()
      put(1000, [busy])
      expect(table.reading(A)).include({ sealedAt: 900, idleAt: undefined })
      table.reported([entry()], { entries: [state({ sealedFor: 9.1, idleFor: 0.25 })] }, at(10_000), 9000)
      expect(table.reading(A)).include({ sealedAt: 900, idleAt: 9750, unchangedSince: 10_000 })
      table.reported([entry()], { entries: [state({ sealedFor: 9.6, idleFor: 0.76 })] }, at(10_500), 10_400)
      expect(table.reading(A), 'they stay').include({ sealedAt: 900, idleAt: 9750 })
    })

    it('are no earlier than the last report of a request, if the worker that had it died', () => {
      const { table, put } = rig()
      put(1000, [busy])
      table.reported([entry()], { entries: [state({ sealedFor: 1.1, idleFor: 1.1 })] }, at(2000), 1500)
      expect(table.reading(A)).include({ sealedAt: 900, idleAt: 1000 })
    })

    it('are those of the reports, if the plugin is older and tells none', () => {
      const { table, put } = rig()
      put(1000, [state({ inflight: { requests: 1, long: 0 } })])
      table.reported([entry()], { entries: [state()] }, at(2000), 1500)
      expect(table.reading(A)).include({ sealedAt: 1000, idleAt: 2000 })
    })
  })

  it('are lifted when no longer desired, even after a lost answer, until their ttl is over', () => {
    const { desired, table, put } = rig()
    table.sent([entry()], 0)
    table.failed('no connection', 1)
    desired.clear()
    expect(table.over(2)).eql([A])
    expect(table.over(TTL)).eql([])
    desired.set(A, entry())
    put(TTL, [state()])
    desired.clear()
    table.lifted(table.over(TTL + 1))
    expect(table.over(TTL + 1)).eql([])
  })

  it('are put again when the gateway may have restarted, and when it lacks one', () => {
    const { desired, table, put } = rig()
    put(0, [state()], [], true)
    expect(table.due(1), 'its answer was from before').eql([entry()])
    put(1, [state()])
    expect(table.compare([state()], 2)).equal(false)
    expect(table.compare([], 0), 'asked before it was stored').equal(false)
    expect(table.compare([], 2)).equal(true)
    expect(table.due(3)).eql([entry()])
    put(3, [state()])
    table.restarted('j')
    expect(table.reading(A)).include({ instance: 'j', entry: 'absent' })
    expect(table.due(4)).eql([entry()])
    desired.clear()
    expect(table.over(5), 'it may have fetched them').eql([A])
  })

  describe('compared with the list of the gateway', () => {
    const NODES = { nodes: ['10.0.0.1', '10.0.0.9'] }
    const BOTH = [state(), state({ ip: '10.0.0.9' })]

    it('are due again if an address or the seal is missing, even if they were desired anew meanwhile', () => {
      const { desired, table, put } = rig(entry(NODES))
      put(0, BOTH)
      desired.set(A, entry({ ...NODES, watch: false }))
      expect(table.compare(BOTH, 1)).equal(false)
      for (const list of [[], [state()], [state(), state({ ip: '10.0.0.9', state: 'draining' })]]) {
        expect(table.compare(list, 1)).equal(true)
        expect(table.due(1).map(({ uid }) => uid)).eql([A])
        put(0, BOTH)
      }
      desired.clear()
      expect(table.compare([], 1), 'not desired any more').equal(false)
    })

    it('are not due again for a seal that the gateway has refused', () => {
      const { table, put } = rig(entry({ sealIf: ['t'] }))
      put(0, [state({ state: 'draining' })])
      expect(table.compare([state({ state: 'draining' })], 1)).equal(false)
    })
  })

  it('that are frozen are neither put, renewed nor removed, whatever the gateway holds', () => {
    const { desired, table, put } = rig()
    put(0, [state()])
    const frozen = entry({ frozen: true })
    desired.set(A, frozen)
    desired.set('new' as PodUid, entry({ uid: 'new' as PodUid, frozen: true }))
    expect([table.compare([], 1), table.due(TTL), table.over(1), table.renewAt()]).eql([
      false,
      [],
      [],
      Infinity
    ])
    table.forget()
    expect(table.due(1)).eql([])
    desired.set(A, entry())
    expect(table.due(1)).eql([entry()])
  })

  it('wait two seconds for room, and are not polled until then', () => {
    const { table, put } = rig()
    put(0, [], [A])
    expect(table.reading(A)?.problem).equal('no room')
    expect([table.watched(true), table.watched(false)]).eql([[], []])
    expect(table.due(1999)).eql([])
    expect(table.due(2000)).eql([entry()])
  })

  it('are long-polled while they are sealed and have requests in flight', () => {
    const { table, put } = rig()
    put(0, [state({ inflight: { requests: 2, long: 0 } })])
    expect([table.watched(true), table.watched(false)]).eql([[entry()], []])
    const before = table.movedAt()
    table.reported([entry()], { entries: [state()] }, at(9), 9)
    expect(table.movedAt()).above(before)
    expect([table.watched(true), table.watched(false)]).eql([[], [entry()]])
    table.reported([entry()], { entries: [] }, at(8), -1)
    expect(table.reading(A), 'asked before it was put').include({ entry: 'sealed' })
  })

  it('lose an address only by being lifted first', () => {
    const { desired, table, put } = rig(entry({ nodes: ['10.0.0.1', '10.0.0.9'] }))
    put(0, [state(), state({ ip: '10.0.0.9' })])
    desired.set(A, entry())
    expect(table.shrunk([entry()])).eql([entry()])
    put(1, [state()])
    expect(table.shrunk([entry()])).eql([])
  })
})
