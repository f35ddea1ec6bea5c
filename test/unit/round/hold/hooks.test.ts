import { expect } from 'chai'
import type { Ack, Hook } from '../../../../agent/rules/drain/drain.ts'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import { createHooks, createFreshWatch } from '../../../../agent/round/hold/hooks.ts'
import { hook } from '../../../build/drain.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { ackFor } from '../../../build/serve.ts'
import { manualClock } from '../../../build/manual-clock.ts'

/** @param fresh what a question whether the watch is complete leads to */
function rig(
  watched: PodFact[],
  fresh: () => Promise<void> = () => Promise.resolve(),
  proven: (hook: Hook) => Ack | undefined = () => undefined
) {
  const seen = { doubts: 0, woken: 0, asked: 0 }
  const hooks = createHooks({
    proven,
    freshWatch: () => ((seen.asked += 1), fresh()),
    wake: () => (seen.woken += 1),
    cluster: {
      pods: { get: (uid: string) => watched.find(p => p.uid === uid) } as never,
      verifyWatch: () => (seen.doubts += 1)
    }
  })
  return { hooks, seen }
}

const turn = () => new Promise(resolve => setImmediate(resolve))
const never = new AbortController().signal

describe('held hooks', () => {
  it('need no question about a pod that the watch shows ending', async () => {
    const ending = pod('web-1', terminating(0))
    const { hooks, seen } = rig([ending])
    const answered = hooks.hold({ hook: hook(ending), pod: ending }, never)
    hooks.answer(hooks.held()[0]!.hook, ackFor(ending))
    expect((await answered).result).to.equal('drained')
    expect([seen.asked, seen.woken, hooks.held().length]).to.deep.equal([0, 1, 0])
  })

  it('are answered at once if the drain is proven, and ask for no round', async () => {
    const ending = pod('web-1', terminating(0))
    const { hooks, seen } = rig([ending], undefined, () => ackFor(ending))
    expect((await hooks.hold({ hook: hook(ending), pod: ending }, never)).result).to.equal('drained')
    expect([seen.woken, hooks.held().length]).to.deep.equal([0, 0])
  })

  it('show which run of the container stops, as the watch shows it at the call, if the pod itself calls', () => {
    const serving = pod('web-1', { runs: 'app=2 proxy=1' })
    const { hooks } = rig([serving])
    const hold = (id: string, container: string | undefined, isOwn: boolean) =>
      void hooks.hold({ hook: hook(serving, { id, container }), pod: pod('web-1'), isOwn }, never)
    hold('1', 'app', true)
    hold('2', undefined, true)
    hold('3', 'app', false)
    expect(hooks.held().map(({ stop }) => stop?.run)).to.deep.equal(['app=2', 'app=2 proxy=1', undefined])
  })

  it('make a watch suspect that shows no end, and is not complete within a second', async () => {
    const serving = pod('web-1')
    const current = rig([serving])
    void current.hooks.hold({ hook: hook(serving), pod: serving }, never)
    const behind = rig([serving], () => Promise.reject(new Error('the watch of pods is behind')))
    void behind.hooks.hold({ hook: hook(serving), pod: serving }, never)
    const answered = rig([serving], () => Promise.reject(new Error('the watch of pods is behind')))
    void answered.hooks.hold({ hook: hook(serving), pod: serving }, never)
    answered.hooks.answer(answered.hooks.held()[0]!.hook, ackFor(serving))
    await turn()
    expect([current, behind, answered].map(({ seen }) => seen.doubts)).to.deep.equal([0, 1, 0])
  })

  it('releases a hook whose caller disconnects, also if it did so before the hook began', async () => {
    const ending = pod('web-1', terminating(0))
    const { hooks } = rig([ending])
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

describe('a fresh watch', () => {
  it('costs one request for all callers, and each answer is newer than its caller', async () => {
    const clock = manualClock()
    const listeners = new Set<() => void>()
    let [assured, requests] = [-Infinity, 0]
    const watch = {
      assurePods: () => void (requests += 1),
      podsAssuredAt: () => assured,
      onChange: (listener: () => void) => (listeners.add(listener), () => listeners.delete(listener))
    }
    const fresh = createFreshWatch(watch, clock)
    const assure = () => {
      assured = clock.now()
      for (const one of listeners) one()
    }
    const first = fresh(never)
    await turn()
    const later = Array.from({ length: 1000 }, () => fresh(never))
    await turn()
    expect(requests).to.equal(1)
    assure()
    await first
    clock.advance(100)
    await turn()
    expect(requests).to.equal(2)
    const behind = later[0]!.catch((err: Error) => err.message)
    clock.advance(1000)
    expect(await behind).to.equal('the watch of pods is behind: no answer within 1000 ms')
    await Promise.allSettled(later)
    expect(requests).to.equal(2)
  })
})
