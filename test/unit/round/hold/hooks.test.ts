import { expect } from 'chai'
import type { Ack } from '../../../../agent/rules/drain/ack.ts'
import type { Hook } from '../../../../agent/rules/drain/drain.ts'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import { createHooks } from '../../../../agent/round/hold/hooks.ts'
import { CannotVouch } from '../../../../agent/round/hold/cannot-vouch.ts'
import { createQuestions } from '../../../../agent/round/hold/questions.ts'
import { hook } from '../../../build/drain.ts'
import { manualClock, type ManualClock } from '../../../build/manual-clock.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { ackFor } from '../../../build/serve.ts'

type Answers = (PodFact | undefined | Error | Promise<PodFact>)[]

/** Makes hooks with an API server that gives these answers in sequence, and then always the last answer. */
function rig(
  watched: PodFact[],
  answers: Answers,
  proven: (hook: Hook) => Ack | undefined = () => undefined,
  statusDelayMs = 0
) {
  const clock = manualClock()
  const doubts: string[] = []
  const asked: string[] = []
  let woken = 0
  const questions = createQuestions(
    {
      async fetchPod(namespace, name) {
        asked.push(`${namespace}/${name}`)
        const answer = answers.length > 1 ? answers.shift() : answers[0]
        if (answer instanceof Error) throw answer
        return answer
      }
    },
    clock
  )
  const hooks = createHooks({
    clock,
    questions,
    proven,
    statusDelayMs,
    wake: () => (woken += 1),
    cluster: {
      pods: { get: (uid: string) => watched.find(p => p.uid === uid) } as never,
      verifyWatch: part => doubts.push(part)
    }
  })
  return { hooks, clock, doubts, asked, woken: () => woken }
}

const turn = () => new Promise(resolve => setImmediate(resolve))
/** Moves the clock over the time in which the agent still waits for the watch. Then the agent asks the API server. */
const asks = async (clock: ManualClock) => {
  clock.advance(5)
  await turn()
}
const never = new AbortController().signal

describe('held hooks', () => {
  it('makes no call about a pod that the watch shows ending', async () => {
    const ending = pod('web-1', terminating(0))
    const { hooks, asked } = rig([ending], [undefined])
    const answered = hooks.hold({ hook: hook(ending), pod: ending }, never)
    expect(hooks.held().map(({ ends }) => ends)).to.deep.equal([true])
    hooks.answer(hooks.held()[0]!.hook, ackFor(ending))
    expect((await answered).result).to.equal('drained')
    expect(asked).to.deep.equal([])
    expect(hooks.held()).to.deep.equal([])
  })

  it('answers at once if the drain is proven, and asks for no round', async () => {
    const ending = pod('web-1', terminating(0))
    const { hooks, woken } = rig([ending], [undefined], ({ uid }) =>
      uid === ending.uid ? ackFor(ending) : undefined
    )
    expect((await hooks.hold({ hook: hook(ending), pod: ending }, never)).result).to.equal('drained')
    expect([woken(), hooks.held().length]).to.deep.equal([0, 0])
  })

  it('asks the API server about a pod that the watch shows serving: it ends, so the watch is behind', async () => {
    const serving = pod('web-1')
    const { hooks, clock, doubts, woken } = rig([serving], [{ ...serving, ...terminating(0) }])
    void hooks.hold({ hook: hook(serving), pod: serving }, never)
    expect(hooks.held()[0]?.ends).to.equal(undefined)
    const before = woken()
    await asks(clock)
    expect(hooks.held()[0]).to.include({ ends: true })
    expect(hooks.held()[0]?.pod.deletionAt).to.equal(30_000)
    expect(doubts).to.deep.equal(['pods'])
    expect(woken()).to.be.above(before)
  })

  it('makes no call if the watch shows the end a moment later: hundreds may end at once', async () => {
    const watched = [pod('web-1')]
    const { hooks, clock, asked } = rig(watched, [undefined])
    void hooks.hold({ hook: hook(watched[0]!), pod: watched[0]! }, never)
    watched[0] = pod('web-1', terminating(0))
    await asks(clock)
    expect(hooks.held()[0]).to.include({ ends: true })
    expect(asked).to.deep.equal([])
  })

  it('believes the API server that a pod stays: a container restart', async () => {
    const serving = pod('web-1')
    const { hooks, clock, doubts } = rig([serving], [serving])
    void hooks.hold({ hook: hook(serving), pod: serving }, never)
    await asks(clock)
    expect(hooks.held()[0]).to.include({ ends: false })
    expect(doubts).to.deep.equal([])
  })

  describe('hooks of an end that the kubelet may have begun', () => {
    const DELAY = 3000
    const held = async (answers: Answers, delay = DELAY) => {
      const watched = [pod('web-1')]
      const given = rig(watched, answers, undefined, delay)
      const called = { ...hook(watched[0]!), receivedAt: given.clock.now() }
      const answered = given.hooks.hold({ hook: called, pod: watched[0]! }, never)
      await asks(given.clock)
      return { ...given, watched, called, answered, entry: () => given.hooks.held()[0] }
    }

    it('calls again if the first answer took longer than the delay: it is as old as its call (A23)', async () => {
      const first = Promise.withResolvers<PodFact>()
      const { clock, asked, entry } = await held(
        [first.promise, { ...pod('web-1'), disruptionTarget: true }],
        500
      )
      clock.advance(600)
      first.resolve(pod('web-1'))
      await turn()
      clock.advance(0)
      await turn()
      expect([entry()?.ends, asked.length]).to.deep.equal([true, 2])
    })

    it('believes that the pod stays only after a second call, after the delay', async () => {
      const { clock, called, asked, entry, woken } = await held([pod('web-1')])
      clock.advance(DELAY - 6)
      await turn()
      expect([entry()?.ends, asked.length]).to.deep.equal([undefined, 1])
      const before = woken()
      clock.advance(1)
      await turn()
      expect(asked).to.have.length(2)
      const { receivedAt } = called
      const when = { at: receivedAt + 5, again: receivedAt + DELAY }
      expect(entry()).to.deep.include({ ends: false, asked: when })
      expect(woken()).to.be.above(before)
    })

    it('learns of the end from the API server if the watch is silent', async () => {
      const { clock, entry, doubts } = await held([pod('web-1'), pod('web-1', { disruptionTarget: true })])
      clock.advance(DELAY)
      await turn()
      expect(entry()).to.include({ ends: true })
      expect(entry()?.pod.disruptionTarget).to.equal(true)
      expect(doubts).to.deep.equal(['pods'])
    })

    it('makes no second call once the watch shows the end, or the hook is answered', async () => {
      const late = await held([pod('web-1')])
      late.watched[0] = pod('web-1', { phase: 'Failed' })
      late.clock.advance(DELAY)
      await turn()
      expect(late.entry()).to.include({ ends: true })
      expect(late.asked).to.have.length(1)

      const over = await held([pod('web-1')])
      over.hooks.answer(over.called, ackFor(over.watched[0]!))
      await over.answered
      await turn()
      expect(over.clock.pending).to.equal(0)
      over.clock.advance(DELAY)
      await turn()
      expect(over.asked).to.have.length(1)
    })

    it('cannot vouch if the API server is down at the second call', async () => {
      const { clock, answered } = await held([pod('web-1'), new Error('connection refused')])
      const refused = answered.catch((err: unknown) => err)
      for (let i = 0; i < 9; i += 1) {
        clock.advance(1000)
        await turn()
      }
      expect(await refused).to.be.instanceOf(CannotVouch)
    })

    it('is a witness for the grace, answered or not, until a container comes back', async () => {
      const { hooks, called, watched } = await held([pod('web-1')])
      const web = watched[0]!
      hooks.answer(called, ackFor(web))
      const at = (of: PodFact, ms: number) => hooks.witnessOf(of, called.receivedAt + ms)
      expect(at(web, 29_999)).to.equal(called.receivedAt)
      expect(at(web, 30_000)).to.equal(undefined)
      expect(at({ ...web, restarts: 1 }, 5000)).to.equal(undefined)
      expect(at(pod('web-2'), 5000)).to.equal(undefined)
    })
  })

  it('asks again, twice, if the drain of its pod was undone', async () => {
    const ending = pod('web-1', terminating(0))
    const watched = [ending]
    const { hooks, clock, asked } = rig(watched, [pod('web-1')], undefined, 3000)
    void hooks.hold({ hook: hook(ending), pod: ending }, never)
    clock.advance(20_000)
    watched[0] = pod('web-1')
    const undoneAt = clock.now()
    hooks.askAgain(ending.uid)
    expect(hooks.held()[0]).to.include({ ends: undefined })
    await asks(clock)
    // A question is open already, so the agent does not ask a second time.
    hooks.askAgain(ending.uid)
    clock.advance(2994)
    await turn()
    expect([hooks.held()[0]?.ends, asked.length]).to.deep.equal([undefined, 1])
    clock.advance(1)
    await turn()
    expect(asked).to.have.length(2)
    const [at, again] = [undoneAt + 5, undoneAt + 3000]
    expect(hooks.held()[0]).to.deep.include({ ends: false, asked: { at, again } })
    hooks.askAgain('uid-other' as never)
    expect(hooks.held()[0]).to.include({ ends: false })
  })

  it('counts a pod as ended if it is gone, or another pod has its name', async () => {
    const serving = pod('web-1')
    for (const answer of [undefined, pod('web-1', { uid: 'uid-next' as never })]) {
      const { hooks, clock } = rig([serving], [answer])
      void hooks.hold({ hook: hook(serving), pod: serving }, never)
      await asks(clock)
      expect(hooks.held()[0]).to.include({ ends: true })
    }
  })

  it('tries again, and cannot vouch while the API server stays down', async () => {
    const serving = pod('web-1')
    const { hooks, clock, asked } = rig([serving], [new Error('connection refused')])
    const refused = hooks.hold({ hook: hook(serving), pod: serving }, never).catch((err: unknown) => err)
    for (let i = 0; i < 4; i += 1) {
      await turn()
      clock.advance(1000)
    }
    expect(await refused).to.be.instanceOf(CannotVouch)
    expect(asked).to.have.length(4)
    expect(hooks.held()).to.deep.equal([])
  })

  it('bounds each try', async () => {
    const serving = pod('web-1')
    const clock = manualClock()
    const signals: AbortSignal[] = []
    const hanging = createHooks({
      clock,
      proven: () => undefined,
      statusDelayMs: 0,
      wake: () => {},
      cluster: {
        pods: { get: () => serving } as never,
        verifyWatch: () => {}
      },
      questions: createQuestions(
        {
          fetchPod: (_namespace, _name, signal) => {
            signals.push(signal as AbortSignal)
            return new Promise((_resolve, reject) =>
              signal?.addEventListener('abort', () => reject(signal.reason as Error))
            )
          }
        },
        clock
      )
    })
    void hanging.hold({ hook: hook(serving), pod: serving }, never).catch(() => {})
    await asks(clock)
    expect(signals.map(signal => signal.aborted)).to.deep.equal([false])
    clock.advance(1000)
    expect(signals.map(signal => signal.aborted)).to.deep.equal([true])
  })

  it('releases a hook whose caller disconnects, also if it did so before the hook began', async () => {
    const ending = pod('web-1', terminating(0))
    const { hooks } = rig([ending], [ending])
    const away = new AbortController()
    const reason = new Error('the caller went away')
    const held = hooks.hold({ hook: hook(ending), pod: ending }, away.signal).catch((err: unknown) => err)
    expect([...hooks.uids()]).to.deep.equal([ending.uid])
    away.abort(reason)
    expect(await held).to.equal(reason)
    expect(hooks.held()).to.deep.equal([])
    const late = hooks.hold({ hook: hook(ending), pod: ending }, away.signal).catch((err: unknown) => err)
    expect(await late).to.equal(reason)
  })
})
