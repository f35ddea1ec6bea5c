import { expect } from 'chai'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import { createEarlyEnds } from '../../../../agent/round/hold/early-ends.ts'
import { createFindPod } from '../../../../agent/round/hold/find-pod.ts'
import { createFreshWatch } from '../../../../agent/round/hold/fresh-watch.ts'
import { createQuestions } from '../../../../agent/round/hold/questions.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { createSliceStore } from '../../../../agent/kubernetes/facts/slice-store.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { pod, terminating } from '../../../build/pod.ts'

const never = new AbortController().signal
const turn = () => new Promise(resolve => setImmediate(resolve))
const name = (i: number | string) => ({ namespace: 'shop', name: `web-${i}` })

/** Makes an API server that has these pods. It answers only when the test tells it to. */
function rig(there: readonly PodFact[] = []) {
  const clock = manualClock()
  const asked: string[] = []
  const open: (() => void)[] = []
  const has = new Map(there.map(one => [one.name, one]))
  const questions = createQuestions(
    {
      fetchPod(_namespace, name) {
        asked.push(name)
        return new Promise(resolve => open.push(() => resolve(has.get(name))))
      }
    },
    clock
  )
  const answer = async () => {
    await turn()
    for (const one of open.splice(0)) one()
    await turn()
  }
  return { clock, asked, questions, answer, has }
}

describe('questions to the API server', () => {
  it('that are equal share the next request, and never one that has begun', async () => {
    const { asked, questions, answer } = rig()
    const all = [questions.pod('caller', name(1), never)]
    await turn()
    for (let i = 0; i < 500; i++) all.push(questions.pod('caller', name(1), never))
    await turn()
    expect(asked).to.have.length(1)
    await answer()
    expect(asked).to.have.length(2)
    await answer()
    expect(await Promise.all(all)).to.have.length(501)
    expect(asked).to.have.length(2)
  })

  it('of callers are few at once and bounded in number, and do not delay those of pods', async () => {
    const { asked, questions, answer } = rig()
    const ask = (i: number) => questions.pod('caller', name(i), never).catch((err: Error) => err.message)
    const forged = Array.from({ length: 2000 }, (_, i) => ask(i))
    await turn()
    expect(asked).to.have.length(4)
    expect(await forged[1999]).to.match(/too many questions/)
    for (let i = 0; i < 100; i++) await answer()
    expect(asked.length, 'in one second').to.be.at.most(100)
    const own = questions.pod('pod', name('own'), never)
    await answer()
    expect(asked.at(-1)).to.equal('web-own')
    expect(await own).to.equal(undefined)
  })

  it('end for a caller that has left', async () => {
    const { questions, answer } = rig()
    const away = new AbortController()
    const left = questions.pod('pod', name(1), away.signal).catch((err: Error) => err.message)
    const stays = questions.pod('pod', name(1), never)
    away.abort(new Error('away'))
    expect(await left).to.equal('away')
    await answer()
    expect(await stays).to.equal(undefined)
  })
})

describe('a pod by name', () => {
  it('that does not exist is asked about once a second, and is found once it exists', async () => {
    const { clock, asked, questions, answer, has } = rig()
    const { store, sink } = createPodStore(clock)
    const find = createFindPod({ pods: store, isWatched: () => true }, questions, clock)
    const first = find('shop', 'web-1', never)
    await answer()
    expect(await first).to.equal(undefined)
    for (let i = 0; i < 1000; i++) expect(await find('shop', 'web-1', never)).to.equal(undefined)
    expect(asked).to.have.length(1)
    const created = pod('web-1')
    sink.set(created)
    expect(await find('shop', 'web-1', never), 'the watch shows it').to.equal(created)
    sink.gone(created.uid, undefined)
    has.set('web-1', created)
    clock.advance(1000)
    const again = find('shop', 'web-1', never)
    await answer()
    expect(await again, 'the watch is behind').to.equal(created)
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
    expect(await behind).to.equal('the watch of pods is behind')
    await Promise.allSettled(later)
    expect(requests).to.equal(2)
  })
})

describe('a slice that marks a pod as terminating', () => {
  const slice = (one: PodFact) => ({
    uid: 's',
    namespace: 'shop',
    name: 's',
    service: 'web',
    family: 'IPv4' as const,
    ports: [],
    endpoints: [{ address: '10.0.0.1', podUid: one.uid, ready: false, serving: true, terminating: true }]
  })

  it('makes the agent ask the API server, seldom, and not about pods that are known to end', async () => {
    const serving = pod('web-1')
    const { clock, asked, questions, answer } = rig([serving])
    const [pods, slices] = [createPodStore(clock), createSliceStore()]
    const doubts: string[] = []
    const cluster = {
      pods: pods.store,
      slices: slices.store,
      verifyWatch: (part: string) => void doubts.push(part)
    }
    const early = createEarlyEnds(cluster, questions, clock)
    pods.sink.set(serving)
    slices.sink.set(slice(serving))
    const round = async () => {
      early.look()
      clock.advance(100)
      await answer()
    }
    for (let i = 0; i < 10; i++) await round()
    expect(asked).to.have.length(1)
    expect(doubts).to.deep.equal([])
    for (let i = 0; i < 50; i++) await round()
    expect(asked).to.have.length(2)
    pods.sink.set(pod('web-1', terminating(0)))
    for (let i = 0; i < 100; i++) await round()
    expect(asked).to.have.length(2)
  })

  it('makes the watch of pods suspect if the API server agrees', async () => {
    const serving = pod('web-1')
    const { clock, questions, answer } = rig([pod('web-1', terminating(0))])
    const [pods, slices] = [createPodStore(clock), createSliceStore()]
    const doubts: string[] = []
    const verifyWatch = (part: string) => void doubts.push(part)
    const early = createEarlyEnds({ pods: pods.store, slices: slices.store, verifyWatch }, questions, clock)
    pods.sink.set(serving)
    slices.sink.set(slice(serving))
    early.look()
    clock.advance(100)
    await answer()
    expect(doubts).to.deep.equal(['pods'])
  })
})
