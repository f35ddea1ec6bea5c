import { expect } from 'chai'
import { startSide, type Side } from './side.ts'

/** Two agents, of which one lags: what it knows is as of an earlier revision of the API server. */
describe('What an agent knows, as of a revision', () => {
  let side: Side
  before(async () => {
    side = await startSide()
    await side.configure({ kinds: {} })
  })
  after(() => side.stop())
  const ENTRIES = '/v1/barrier/entries'
  const send = (method: string, body: object) => side.barrier.send(method, ENTRIES, body)
  const put = async (asOf: number | undefined, entry: object = {}) => {
    const one = { uid: 'a', ip: '10.0.0.7', state: 'sealed', ttl: 60, ...entry }
    const { status, body } = await send('PUT', { entries: [one], asOf })
    expect(status).to.equal(200)
    return body.entries[0]!
  }
  const named = async () => (await side.barrier.state()).entries[0]?.successors?.['80'] ?? []
  const naming = (...nodes: string[]) => ({ successors: { '80': nodes } })
  afterEach(() => send('DELETE', { uids: ['a'] }))

  it('is no reason to put an entry that was removed as of a later one', async () => {
    await put(100)
    await send('DELETE', { uids: ['a'], asOf: 102 })
    await send('DELETE', { uids: ['a'], asOf: 101 })
    for (const asOf of [100, 101]) {
      const { error } = await put(asOf)
      expect(error).to.equal('an agent that knows more has removed it')
    }
    expect((await side.barrier.state()).entries).to.deep.equal([])
    expect(await put(102)).to.include({ state: 'sealed' })
    expect(await put(101, { uid: 'b' }), 'another pod').to.include({ state: 'sealed' })
    await send('DELETE', { uids: ['b'] })
    expect(await put(undefined)).to.include({ state: 'sealed' })
  })

  it('is no reason to name a successor that was taken back as of a later one', async () => {
    await put(200, naming('10.0.0.8:80', '10.0.0.9:80'))
    await put(202, naming('10.0.0.9:80'))
    const renewed = await put(201, { ...naming('10.0.0.8:80', '10.0.0.9:80'), ttl: 90 })
    expect(renewed.ttl, 'it renews the entry').to.be.above(80)
    expect(await named()).to.deep.equal(['10.0.0.9:80'])
    await put(201)
    await put(202, naming())
    await put(201, naming('10.0.0.8:80'))
    expect(await named()).to.deep.equal([])
    await put(203, naming('10.0.0.8:80'))
    expect(await named()).to.deep.equal(['10.0.0.8:80'])
  })

  it('goes with what a hook was answered: the first answer stays, is told with its age, and counts as a change', async () => {
    const held = async () => {
      const { entries, held: all } = await side.barrier.state()
      return { entry: entries[0] as unknown as Record<string, unknown>, generation: all.generation }
    }
    await put(300)
    const before = await held()
    expect(before.entry).not.to.have.any.keys('answer', 'answeredFor')
    const text = '{"pod":"web \\ 1"}\n'
    await put(300, { answer: text, answeredFor: 5 })
    const told = await held()
    expect(told.entry['answer']).to.equal(text)
    expect(told.entry['answeredFor']).to.be.within(5, 6)
    expect(told.generation).to.be.above(before.generation)
    await put(300, { answer: 'another', answeredFor: 1 })
    await put(300)
    expect(await held()).to.deep.include({ generation: told.generation })
    expect((await held()).entry['answer']).to.equal(text)
    await send('DELETE', { uids: ['a'] })
    await put(300)
    expect((await held()).entry).not.to.have.any.keys('answer', 'answeredFor')
  })

  it('has at most 1024 bytes for an answer, and needs its age', async () => {
    const one = { uid: 'a', ip: '10.0.0.7', state: 'sealed', ttl: 60 }
    for (const wrong of [
      { answer: 'x'.repeat(1025), answeredFor: 1 },
      { answer: 'x' },
      { answer: 'x', answeredFor: -1 },
      { answer: 5, answeredFor: 1 },
      { stop: 'x' }
    ])
      expect((await send('PUT', { entries: [{ ...one, ...wrong }] })).status).to.equal(400)
  })

  it('goes with which containers stop: a later stop replaces an earlier one, and a lift removes only the one that it names', async () => {
    const stop = async () => {
      const [entry] = (await side.barrier.state()).entries as { stop?: string; stoppedFor?: number }[]
      return entry && [entry.stop, Math.round(entry.stoppedFor ?? -1)]
    }
    const lift = (text: string) => send('DELETE', { uids: ['a'], stops: { a: text } })
    await put(400, { stop: 'app:1', stoppedFor: 20 })
    expect(await stop()).to.deep.equal(['app:1', 20])
    await put(400, { stop: 'app:2', stoppedFor: 5 })
    await put(400, { stop: 'app:1', stoppedFor: 20 })
    await put(400, { stop: 'app:2', stoppedFor: 4 })
    expect(await stop()).to.deep.equal(['app:2', 5])
    await lift('app:1')
    expect(await stop(), 'of an earlier stop').to.deep.equal(['app:2', 5])
    await lift('app:2')
    expect(await stop()).to.equal(undefined)

    await put(400, { stop: 'app:2', stoppedFor: 5 })
    await put(400)
    await put(400, { stop: 'app:2', stoppedFor: 5 })
    await lift('app:2')
    expect(await stop(), 'the pod ends').to.deep.equal([undefined, -1])
    await send('DELETE', { uids: ['a'] })
    expect(await stop()).to.equal(undefined)
    for (const stops of ['app:1', 5])
      expect((await send('DELETE', { uids: ['a'], stops })).status).to.equal(400)
  })

  it('must be a whole number', async () => {
    for (const asOf of [0, 1.5, '100', -1])
      for (const [method, body] of [
        ['PUT', { entries: [] }],
        ['DELETE', { uids: [] }]
      ] as const)
        expect((await send(method, { ...body, asOf })).status, `${method} ${asOf}`).to.equal(400)
  })
})
