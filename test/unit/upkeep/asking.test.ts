import { expect } from 'chai'
import type { PodFact } from '../../../agent/rules/drain/facts.ts'
import { createAsking } from '../../../agent/upkeep/upkeep.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { pod } from '../../build/pod.ts'
import { memoryLog } from '../../build/serve.ts'

/** Makes an API server for which the test gives every answer. */
function server() {
  const clock = manualClock()
  const { log, lines } = memoryLog()
  const waiting: { readonly what: string; readonly answer: PromiseWithResolvers<unknown> }[] = []
  const put = async <T>(what: string, signal?: AbortSignal): Promise<T> => {
    const answer = Promise.withResolvers<unknown>()
    signal?.addEventListener('abort', () => answer.reject(signal.reason as Error))
    waiting.push({ what, answer })
    return (await answer.promise) as T
  }
  const asking = createAsking({
    cluster: {
      fetchPod: (namespace, name, signal) => put<PodFact | undefined>(`${namespace}/${name}`, signal),
      fetchPodsByIp: (ip, signal) => put<readonly PodFact[]>(ip, signal),
      fetchService: ({ namespace, name }, signal) => put<boolean>(`${namespace}/${name}`, signal)
    },
    clock,
    log
  })
  return { asking, clock, lines, waiting, turn: () => new Promise(resolve => setImmediate(resolve)) }
}

describe('asking', () => {
  it('makes one call for all simultaneous callers with the same question, and a new one later', async () => {
    const { asking, clock, waiting } = server()
    const both = [asking.ownersOf('10.0.0.1'), asking.ownersOf('10.0.0.1')]
    expect(waiting.map(({ what }) => what)).to.deep.equal(['10.0.0.1'])
    waiting[0]?.answer.resolve([pod('a')])
    for (const one of both) expect((await one)?.map(({ name }) => name)).to.deep.equal(['a'])
    clock.advance(100)
    void asking.ownersOf('10.0.0.1')
    expect(waiting).to.have.length(2)
  })

  it('has a bounded number of open calls', async () => {
    const { asking, waiting, turn } = server()
    for (let i = 0; i < 40; i++) void asking.ownersOf(`10.0.0.${i}`)
    await turn()
    expect(waiting).to.have.length(16)
    waiting[0]?.answer.resolve([])
    await turn()
    expect(waiting).to.have.length(17)
  })

  it('waits for one second, queueing included, and does not read a missing answer as "none"', async () => {
    const { asking, clock, waiting, lines } = server()
    const all = Array.from({ length: 17 }, (_, i) => asking.ownersOf(`10.0.0.${i}`))
    clock.advance(1000)
    expect(await Promise.all(all)).to.deep.equal(all.map(() => undefined))
    expect(waiting).to.have.length(16)
    expect(lines[0]).to.include({ msg: 'could not ask the API server, so the node is left alone' })
  })

  it('distinguishes a removed pod from a missing answer', async () => {
    const { asking, clock, waiting } = server()
    const [gone, unknown] = [
      asking.pod({ namespace: 'shop', name: 'a' }),
      asking.pod({ namespace: 'shop', name: 'b' })
    ]
    expect(waiting.map(({ what }) => what)).to.deep.equal(['shop/a', 'shop/b'])
    waiting[0]?.answer.resolve(undefined)
    expect(await gone).to.deep.equal({ pod: undefined })
    clock.advance(1000)
    expect(await unknown).to.equal(undefined)
  })

  it('a removed Service, or one without an answer, is not refreshed', async () => {
    for (const [answer, expected] of [
      [true, true],
      [false, false],
      [new Error('refused'), false]
    ] as const) {
      const { asking, waiting } = server()
      const refreshed = asking.refresh({ namespace: 'shop', name: 'web' })
      expect(waiting[0]?.what).to.equal('shop/web')
      if (answer instanceof Error) waiting[0]?.answer.reject(answer)
      else waiting[0]?.answer.resolve(answer)
      expect(await refreshed).to.equal(expected)
    }
  })
})
