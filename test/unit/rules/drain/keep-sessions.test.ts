import { expect } from 'chai'
import { entriesOf, samePut, type DesiredEntry } from '../../../../agent/gateway/barrier/desired-entry.ts'
import { KEEP_SESSIONS } from '../../../../agent/rules/drain/annotations.ts'
import { budgetProblems, keepUntil } from '../../../../agent/rules/drain/budget.ts'
import type { PodFact, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { createMemories } from '../../../../agent/round/gather/memory.ts'
import { desiredEntry, keptSessions, sealLookAt } from '../../../../agent/round/entries/entries.ts'
import { deferredUntil } from '../../../../agent/round/plan-settings.ts'
import { DRAIN_SETTINGS, drainOf, drainsOf, seen } from '../../../build/drain.ts'
import { lagOf } from '../../../../agent/report/snapshot/lag.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

const keeping = (time: string, differs: Partial<PodFact> = {}) =>
  pod('web-1', {
    ...terminating(0),
    ips: ['10.0.0.1'],
    hook: 'safe',
    annotations: { [KEEP_SESSIONS]: time },
    ...differs
  })

/** A drain that began at 0, with a grace of 30 s and a reserve of 5 s. */
const ending = (time: string, differs: Partial<PodFact> = {}) => drainOf(seen(keeping(time, differs)))

describe('the time for which an ending pod keeps its sessions', () => {
  it('is what the pod asks for', () => {
    expect(keepUntil(ending('10s'))).to.equal(10_000)
  })

  it('ends before the deadline, so that the seal has time', () => {
    const drain = ending('1h')
    expect(keepUntil(drain)).to.equal(drain.deadline - 1000)
  })

  it('is nothing without the annotation, or with one that cannot be read', () => {
    for (const annotations of [{}, { [KEEP_SESSIONS]: 'long' }, { [KEEP_SESSIONS]: '0s' }])
      expect(keepUntil(ending('', { annotations }))).to.equal(undefined)
  })

  it('is a problem for `doctor` if the hook is not held for as long', () => {
    expect(budgetProblems(keeping('24s'), DRAIN_SETTINGS)).to.deep.equal([])
    expect(budgetProblems(keeping('25s'), DRAIN_SETTINGS)).to.deep.equal([
      'apisix-drain.io/keep-sessions (25s) is longer than a hook is held (25s), so sessions move before that: raise terminationGracePeriodSeconds (30s) or lower drain.reserve'
    ])
  })
})

describe('the pods that keep their sessions now', () => {
  const drain = ending('10s')
  const kept = (at: number, held: readonly PodUid[], differs: object = {}, one = drain) => {
    const memories = createMemories()
    Object.assign(memories.of(one.uid), differs)
    return [...keptSessions(drainsOf([one]), memories, new Set(held), at)]
  }

  it('have a hook that is held, or one that has not called yet', () => {
    expect(kept(0, [])).to.deep.equal([[drain.uid, 10_000]])
    expect(kept(9999, [drain.uid], { hookAt: 5 })).to.deep.equal([[drain.uid, 10_000]])
  })

  it('are not those whose time is over, whose hook is gone, or that have none', () => {
    expect(kept(10_000, [drain.uid], { hookAt: 5 })).to.deep.equal([])
    expect(kept(1, [], { hookAt: 0 })).to.deep.equal([])
    expect(kept(1, [], {}, ending('10s', { hook: undefined }))).to.deep.equal([])
  })

  it('are not those that may be sealed somewhere already', () => {
    expect(kept(1, [drain.uid], { sealing: true })).to.deep.equal([])
    expect(kept(1, [drain.uid], { sealForced: true })).to.deep.equal([])
  })

  it('have a draining entry with the time, and the reason', () => {
    const memory = createMemories().of(drain.uid)
    const context = {
      world: worldOf([], [drain.pod]),
      cluster: { gateways: () => [{ id: 'g1' }] },
      barrier: { reading: () => undefined },
      successors: () => ({}),
      now: 1,
      keeping: new Map([[drain.uid, 10_000]])
    }
    const entry = desiredEntry(drain, memory, context as never)
    expect(entry).to.deep.include({ state: 'draining', watch: true, keepUntil: 10_000 })
    expect([...memory.unsealed]).to.deep.equal([
      ['g1', 'its sessions are kept (apisix-drain.io/keep-sessions)']
    ])
    expect(sealLookAt(drain, 1)).to.equal(10_000)
    expect(memory.keptUntil).to.equal(10_000)
    desiredEntry(drain, memory, { ...context, now: 7000, keeping: new Map() } as never)
    expect(memory.keptUntil, 'the caller of the hook went away').to.equal(7000)
  })

  it('have no sync lag before the end of that time', () => {
    const moments = { decidedAt: 0, seenAt: 10, sealedAt: 10_020, confirmedAt: null }
    expect(lagOf({ ...moments, keptUntil: 10_000 })).to.equal(20)
    expect(lagOf(moments)).to.equal(10_010)
  })

  it('stay listed, unless some gateway has no barrier', () => {
    const other = pod('web-2', { ips: ['10.0.0.2'] })
    const planned = (unbarred: readonly PodUid[]) =>
      plan(
        worldOf([holder('web', ['10.0.0.1:80', '10.0.0.2:80'])], [drain.pod, other]),
        drainsOf([drain]),
        1,
        { dryRun: false, deferMs: 0, keeping: new Set([drain.uid]), unbarred: new Set(unbarred) }
      )
    const kept = planned([])
    expect(kept.changes).to.deep.equal([])
    expect(kept.kept).to.deep.equal([
      { holder: holder('web', []).key, node: '10.0.0.1:80', uid: drain.uid, why: 'sessions' }
    ])
    expect(deferredUntil(kept, drainsOf([drain]), 0)).to.deep.equal([10_000])
    expect(planned([drain.uid]).changes).to.have.lengthOf(1)
  })
})

describe('an entry that keeps sessions', () => {
  const entry: DesiredEntry = {
    uid: 'uid-1' as PodUid,
    nodes: ['10.0.0.1'],
    state: 'draining',
    watch: true,
    keepUntil: 10_000
  }
  const keep = (keepFrom: number | undefined, one = entry) => entriesOf(one, 60_000, { keepFrom })[0]?.keep

  it('says for how long, if the plugin knows the field', () => {
    expect(keep(2500)).to.equal(7.5)
    expect(keep(undefined)).to.equal(undefined)
    expect(keep(10_001)).to.equal(0)
    expect(keep(0, { ...entry, keepUntil: 7_200_000 })).to.equal(3600)
  })

  it('is put again if the time changes', () => {
    expect(samePut(entry, { ...entry })).to.equal(true)
    expect(samePut(entry, { ...entry, keepUntil: 9000 })).to.equal(false)
  })
})
