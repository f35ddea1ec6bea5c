import { expect } from 'chai'
import * as fc from 'fast-check'
import { answer, deadlineOf } from '../../../../agent/rules/drain/answer.ts'
import type { Drain, DrainSettings, Seen } from '../../../../agent/rules/drain/drain.ts'
import { mayStay } from '../../../../agent/rules/drain/eligible.ts'
import { begin, step } from '../../../../agent/rules/drain/step.ts'
import { DRAIN_SETTINGS, drainOf, hook, proven, seen, waiting } from '../../../build/drain.ts'
import { pod, terminating } from '../../../build/pod.ts'

const time = fc.integer({ min: 0, max: 100_000 })

const seenArb: fc.Arbitrary<Seen> = fc
  .record({
    deletion: fc.option(fc.record({ at: time, grace: fc.integer({ min: 0, max: 90 }) }), { nil: undefined }),
    phase: fc.constantFrom('Running' as const, 'Running' as const, 'Failed' as const),
    ready: fc.boolean(),
    runs: fc.constantFrom('app=1', 'app=1', 'app=2 web=1'),
    gone: fc.constantFrom(false, false, false, true),
    current: fc.constantFrom(true, true, false),
    hookAt: fc.option(time, { nil: undefined }),
    routed: fc.constantFrom([], [80]),
    calls: fc.array(
      fc.record({
        container: fc.constantFrom(undefined, 'app', 'web'),
        run: fc.constantFrom('app=1', 'app=2'),
        at: time
      }),
      { maxLength: 2 }
    ),
    listed: fc.constantFrom(undefined, true, false),
    verdict: fc.oneof(
      fc.constant(undefined),
      fc
        .record({
          until: fc.option(time, { nil: undefined }),
          lastEndpoint: fc.boolean(),
          barred: fc.boolean()
        })
        .map(waiting),
      time.map(at => proven({ at }))
    )
  })
  .map(({ deletion, phase, ready, runs, ...rest }) => {
    const ends = deletion ? terminating(deletion.at, deletion.grace) : {}
    const containers = [
      { name: 'app', ports: [8080] },
      ...(runs.includes('web') ? [{ name: 'web', ports: [] }] : [])
    ]
    return seen(pod('web-1', { phase, ready, runs, containers, ...ends }), rest)
  })

const settingsArb: fc.Arbitrary<DrainSettings> = fc.record({
  reserveMs: fc.integer({ min: 0, max: 40_000 }),
  ghostMs: fc.constantFrom(0, 60_000)
})

/** Rounds at times that never go back, as with the agent's clock. */
const roundsArb = fc
  .array(fc.record({ facts: seenArb, after: fc.integer({ min: 0, max: 20_000 }) }), {
    minLength: 1,
    maxLength: 12
  })
  .map(rounds => {
    let now = 0
    return rounds.map(({ facts, after }) => ({ facts, now: (now += after) }))
  })

function* run(rounds: readonly { facts: Seen; now: number }[], settings: DrainSettings) {
  let drain: Drain | undefined
  for (const { facts, now } of rounds) {
    const before = drain
    drain = drain ? step(drain, facts, now, settings) : begin(facts, now, settings)
    yield { before, drain, facts, now }
  }
}

const law = (
  check: (
    round: ReturnType<typeof run> extends Generator<infer T> ? T : never,
    settings: DrainSettings
  ) => void
) =>
  fc.assert(
    fc.property(roundsArb, settingsArb, (rounds, settings) => {
      for (const round of run(rounds, settings)) check(round, settings)
    }),
    { numRuns: 1_000 }
  )

describe('laws of drains', () => {
  /** More of the pod has to be denied than before. */
  const grows = (before: Drain, drain: Drain): boolean =>
    drain.ports.length > before.ports.length || (drain.isWhole && !before.isWhole)

  it('a proven drain keeps its verdict until it is forgotten, or has to deny more', () =>
    law(({ before, drain }) => {
      if (before === undefined || drain === undefined || before.phase === 'undone') return
      if (before.phase !== 'gone' && grows(before, drain)) return
      if (before.verdict.kind === 'proven' && drain.phase !== 'undone')
        expect(drain.verdict).to.equal(before.verdict)
    }))

  it('no phase leads back to an earlier one', () => {
    const order = { draining: 0, expired: 1, proven: 2, gone: 3, undone: 4 }
    law(({ before, drain }) => {
      if (before && drain && !grows(before, drain))
        expect(order[drain.phase]).to.be.at.least(order[before.phase])
      if (before?.phase === 'undone') expect(drain).to.equal(undefined)
    })
  })

  it('a deletion is never taken back, and after it the deadline only moves earlier', () =>
    law(({ before, drain }) => {
      if (before?.witnesses.deletion === undefined || drain === undefined) return
      expect(drain.phase).to.not.equal('undone')
      expect(drain.deadline).to.be.at.most(before.deadline)
      expect(drain.pod.deletionAt).to.be.at.most(before.pod.deletionAt as number)
    }))

  it('what is denied only grows', () =>
    law(({ before, drain }) => {
      if (!before || !drain) return
      expect(drain.ports).to.include.members([...before.ports])
      if (before.isWhole) expect(drain.isWhole).to.equal(true)
    }))

  it('no drain begins while Kubernetes shows that the pod stays, unless the pod itself calls', () =>
    law(({ before, drain, facts }) => {
      const { pod } = facts
      const ends = pod.deletionAt !== undefined || pod.phase === 'Failed' || facts.gone
      if (before === undefined && !ends && facts.calls.length === 0) expect(drain).to.equal(undefined)
    }))

  it('every hook is answered by the deadline, and never waits beyond it', () =>
    law(({ drain, facts, now }, settings) => {
      const held = hook(facts.pod, {
        receivedAt: Math.max(0, now - 1_000),
        timeoutMs: 7_000
      })
      // The deadline of a drain that was undone does not count, so the deadline comes from the pod.
      const ends = drain && drain.phase !== 'undone' && !mayStay(drain)
      const end = ends ? drain.deadline : deadlineOf(facts.pod, held.receivedAt, settings)
      const told = answer(held, drain, facts, now, settings)
      if (told.kind === 'wait') {
        expect(now).to.be.below(end)
        expect(told.until).to.be.within(now, Math.min(end, held.receivedAt + 7_000))
      }
      expect(answer(held, drain, facts, end, settings).kind).to.equal('ack')
      expect(answer(held, drain, facts, held.receivedAt + 7_000, settings).kind).to.equal('ack')
    }))

  it('the deadline leaves the reserve, and is never before the start', () =>
    fc.assert(
      fc.property(seenArb, time, settingsArb, ({ pod }, since, settings) => {
        const deadline = deadlineOf(pod, since, settings)
        expect(deadline).to.be.at.least(since)
        const end = Math.min(pod.deletionAt ?? Infinity, since + (pod.deletionGraceMs ?? pod.graceMs))
        if (deadline > since) expect(deadline).to.equal(end - settings.reserveMs)
      })
    ))

  it('order and repetition of facts do not change the outcome', () => {
    const stale = pod('web-1')
    const facts = [
      seen(stale, { hookAt: 0, calls: [{ container: undefined, run: 'app=1', at: 0 }] }),
      seen(stale),
      seen(pod('web-1', terminating(0, 60))),
      seen(pod('web-1', terminating(0, 10))),
      seen(pod('web-1', { ...terminating(0, 10), ips: [] }))
    ]
    const outcome = (order: readonly Seen[]) => {
      const last = [
        ...run(
          order.map(facts => ({ facts, now: 0 })),
          DRAIN_SETTINGS
        )
      ].at(-1)?.drain
      return last && { ...last, pod: { ...last.pod, annotations: {} } }
    }
    const wanted = outcome(facts)
    expect(wanted?.deadline).to.equal(5_000)
    const shuffled = fc
      .array(fc.constantFrom(...facts), { maxLength: 6 })
      .chain(more => fc.shuffledSubarray([...facts, ...more], { minLength: facts.length + more.length }))
    fc.assert(fc.property(shuffled, order => void expect(outcome(order)).to.deep.equal(wanted)))
  })

  it('two hooks of one pod get the same answer', () => {
    const facts = seen(pod('web-1', terminating(0)), { verdict: proven({ at: 5 }) })
    const drain = drainOf(facts)
    const told = ['a', 'b'].map(id => answer(hook(facts.pod, { id }), drain, facts, 10, DRAIN_SETTINGS))
    expect(told[0]).to.deep.equal(told[1])
  })
})
