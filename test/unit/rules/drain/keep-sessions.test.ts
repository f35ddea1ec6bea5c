import { expect } from 'chai'
import { entriesOf, samePut, type DesiredEntry } from '../../../../agent/gateway/barrier/desired-entry.ts'
import { KEEP_SESSIONS } from '../../../../agent/rules/drain/annotations.ts'
import { budgetProblems, keepTime } from '../../../../agent/rules/drain/budget.ts'
import type { PodFact, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { createMemories } from '../../../../agent/round/gather/memory.ts'
import { desiredEntry, sealLookAt } from '../../../../agent/round/entries/seal-decision.ts'
import { keptSessions } from '../../../../agent/round/entries/kept-sessions.ts'
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

/** Returns a drain that began at 0, with a grace of 30 s and a reserve of 5 s. `time` is the annotation `keep-sessions`. */
const ending = (time: string, differs: Partial<PodFact> = {}) => drainOf(seen(keeping(time, differs)))

describe('the time for which an ending pod keeps its sessions', () => {
  it('is what the pod asks for', () => {
    expect(keepTime(ending('10s'), 0)).to.deep.equal({ from: 0, until: 10_000 })
  })

  it('ends before the deadline, so that the seal has time', () => {
    const drain = ending('1h')
    expect(keepTime(drain, 0)?.until).to.equal(drain.deadline - 1000)
  })

  it('is nothing without the annotation, or with one that cannot be read', () => {
    for (const annotations of [{}, { [KEEP_SESSIONS]: 'long' }, { [KEEP_SESSIONS]: '0s' }])
      expect(keepTime(ending('', { annotations }), 0)).to.equal(undefined)
  })

  it('begins with the decision, also for an agent that starts later', () => {
    const late = { ...ending('10s'), since: 6000, decidedAt: 1000 }
    expect(keepTime(late, 0)).to.deep.equal({ from: 1000, until: 11_000 })
    expect(keepTime(late, 500), 'the API server is behind').to.deep.equal({ from: 1500, until: 11_500 })
    expect(keepTime({ ...late, decidedAt: 9000 }, 0), 'it is ahead').to.deep.equal({
      from: 6000,
      until: 16_000
    })
    expect(keepTime({ ...late, decidedAt: undefined }, 0)).to.deep.equal({ from: 6000, until: 16_000 })
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
    return [...keptSessions(drainsOf([one]), memories, new Set(held), at, 0)]
  }

  it('have a hook that is held, or one that has not called yet', () => {
    const keeping = { from: 0, until: 10_000, sureUntil: 10_000 }
    expect(kept(0, [])).to.deep.equal([[drain.uid, keeping]])
    expect(kept(9999, [drain.uid], { hookAt: 5 })).to.deep.equal([[drain.uid, keeping]])
  })

  it('are kept for ten seconds only until a hook is held here: another agent may hold it, or none', () => {
    const long = ending('20s')
    const until = Math.min(20_000, long.deadline - 1000)
    const [[, keeping] = []] = kept(1, [], {}, long)
    expect(keeping).to.deep.equal({ from: 0, until, sureUntil: 10_000 })
    expect(kept(1, [long.uid], {}, long)).to.deep.equal([[long.uid, { from: 0, until, sureUntil: until }]])
    expect(kept(1, [], {}, ending('20s', { hook: 'other' })), 'a script that calls').to.have.lengthOf(1)
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
      keeping: new Map([[drain.uid, { from: 0, until: 10_000, sureUntil: 5000 }]])
    }
    const entry = desiredEntry(drain, memory, context as never)
    expect(entry).to.deep.include({ state: 'draining', watch: true, keep: { from: 0, until: 5000 } })
    expect(desiredEntry(drain, memory, { ...context, now: 5000 } as never)).not.have.property('keep')
    expect([...memory.unsealed]).to.deep.equal([
      ['g1', 'its sessions are kept (apisix-drain.io/keep-sessions)']
    ])
    expect(sealLookAt(drain, 1000, 0)).to.equal(10_000)
    expect(memory.keptUntil).to.equal(10_000)
    const over = desiredEntry(drain, memory, { ...context, now: 7000, keeping: new Map() } as never)
    expect(memory.keptUntil, 'the caller of the hook went away').to.equal(7000)
    expect(over, 'told to the gateways too').to.deep.include({
      state: 'draining',
      keep: { from: 0, until: 7000 }
    })
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
    expect(deferredUntil(kept, drainsOf([drain]), 0, 0)).to.deep.equal([10_000])
    expect(planned([drain.uid]).changes).to.have.lengthOf(1)
  })
})

describe('an entry that keeps sessions', () => {
  const entry: DesiredEntry = {
    uid: 'uid-1' as PodUid,
    nodes: ['10.0.0.1'],
    state: 'draining',
    watch: true,
    keep: { from: 500, until: 10_000 }
  }
  const keep = (keepFrom: number | undefined, one = entry) => {
    const { keep, kept } = entriesOf(one, 60_000, { keepFrom })[0] ?? {}
    return [keep, kept]
  }

  it('says for how long, if the plugin knows the field', () => {
    expect(keep(2500)).to.deep.equal([7.5, 2])
    expect(keep(undefined)).to.deep.equal([undefined, undefined])
    expect(keep(10_001)).to.deep.equal([0, 9.501])
    expect(keep(2500, { ...entry, state: 'sealed' })).to.deep.equal([undefined, undefined])
    expect(keep(500, { ...entry, keep: { from: 500, until: 1e9 } })).to.deep.equal([86_400, 0])
  })

  it('is put again if the time changes', () => {
    expect(samePut(entry, { ...entry })).to.equal(true)
    expect(samePut(entry, { ...entry, keep: { from: 500, until: 9000 } })).to.equal(false)
  })
})
