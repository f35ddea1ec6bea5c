import { expect } from 'chai'
import {
  readGatewayState,
  createIdentity,
  type Identity
} from '../../../../agent/gateway/barrier/gateway-state.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const turn = () => new Promise(resolve => setImmediate(resolve))

/** Makes a reader of a gateway, on a clock that the test moves. The gateway gives the answers of `answer`. */
function rig(answer: () => unknown, holding = { now: false }, identity = createIdentity(false)) {
  const clock = manualClock()
  let reads = 0
  let told = 0
  const reader = readGatewayState({
    clock,
    identity,
    isHolding: () => holding.now,
    listed: () => {},
    tell: () => (told += 1),
    api: {
      entries: () => Promise.resolve([]),
      async state(signal) {
        signal?.throwIfAborted()
        reads += 1
        const given = answer()
        if (given instanceof Error) throw given
        return { now: 0, entries: [], held: {}, ...(given as object) } as never
      }
    }
  })
  const advance = async (ms: number) => {
    clock.advance(ms)
    await turn()
  }
  return { reader, clock, advance, reads: () => reads, told: () => told }
}

describe('gateway state', () => {
  it('is read at once and then every five seconds', async () => {
    const { reader, advance, reads, told } = rig(() => ({ instance: 'a', workers: [] }))
    await turn()
    expect(reads()).to.equal(1)
    expect(told()).to.equal(1)
    expect(reader.state().status?.instance).to.equal('a')
    await advance(4999)
    expect(reads()).to.equal(1)
    await advance(1)
    expect(reads()).to.equal(2)
    await reader.stop()
  })

  it('is read four times a second while entries are held: nothing else shows a quick restart', async () => {
    const holding = { now: true }
    const { reader, advance, reads } = rig(() => ({ instance: 'a', workers: [] }), holding)
    await turn()
    await advance(250)
    expect(reads()).to.equal(2)
    holding.now = false
    await advance(250)
    expect(reads()).to.equal(3)
    await advance(4999)
    expect(reads()).to.equal(3)
    await reader.stop()
  })

  /** Plays two agents that poll at the same moments and in the same order, through a load balancer in front of two gateways. */
  async function inStep(identities: readonly Identity[], everyMs: number, times: number, isHolding = false) {
    const clock = manualClock()
    let asked = 0
    const api = {
      entries: () => Promise.resolve([]),
      state: async () =>
        ({
          instance: asked++ % 2 === 0 ? 'a' : 'b',
          fit: true,
          now: 0,
          entries: [],
          held: {},
          workers: []
        }) as never
    }
    const readers = identities.map(identity =>
      readGatewayState({
        api,
        clock,
        identity,
        isHolding: () => isHolding,
        listed: () => {},
        tell: () => {}
      })
    )
    for (let i = 0; i < times; i++) {
      await turn()
      clock.advance(everyMs)
    }
    await Promise.all(readers.map(reader => reader.stop()))
  }

  it('reads an address by hand twice in a row: otherwise each of two agents in step could reach only one of two gateways', async () => {
    const identities = [createIdentity(true), createIdentity(true)]
    await inStep(identities, 1, 20)
    expect(identities.map(identity => identity.isSeveral())).to.deep.equal([true, true])
  })

  for (const isHolding of [true, false])
    it(`keeps reading it twice while ${isHolding ? 'entries are' : 'nothing is'} held: a second gateway may appear behind the address later`, async () => {
      const identities = ['a', 'b'].map(instance => {
        const identity = createIdentity(true)
        for (let i = 0; i < 16; i++) identity.note({ instance, fit: true }, i, i, true)
        expect(identity.doubt()).to.equal('')
        return identity
      })
      await inStep(identities, 5000, 4, isHolding)
      expect(identities.map(identity => identity.isSeveral())).to.deep.equal([true, true])
    })

  it('is read four times a second while an address by hand is unfit, and again after a failed read', async () => {
    let answer: unknown = { instance: 'a', fit: false, workers: [] }
    const identity = createIdentity(true)
    const { reader, advance, reads } = rig(() => answer, { now: false }, identity)
    await turn()
    expect(reads()).to.equal(2)
    await advance(250)
    expect(reads()).to.equal(4)
    answer = { instance: 'a', fit: true, workers: [] }
    await advance(250)
    while (identity.isOpen()) await turn()
    expect(reads()).to.be.within(20, 22)
    answer = new Error('refused')
    await advance(5000)
    expect(identity.doubt()).to.contain('not known yet')
    answer = { instance: 'a', fit: true, workers: [] }
    await advance(5000)
    while (identity.isOpen()) await turn()
    await reader.stop()
  })

  it('keeps its last value when the gateway fails, and reports why', async () => {
    let fail = false
    const { reader, advance } = rig(() => (fail ? new Error('refused') : { instance: 'a', workers: [] }))
    await turn()
    const { lastSuccessAt } = reader.state()
    fail = true
    await advance(5000)
    expect(reader.state()).to.include({ problem: 'refused', lastSuccessAt })
    expect(reader.state().lastAttemptAt).to.equal((lastSuccessAt ?? 0) + 5000)
    expect(reader.state().status?.instance).to.equal('a')
    fail = false
    await advance(5000)
    expect(reader.state().problem).to.equal('')
    await reader.stop()
  })

  it('notifies of every change that matters to a decision, and never twice', async () => {
    const worker = { pid: 1, fit: true, revision: 9, revisions: { upstreams: 5, routes: 9 }, applied: 1 }
    const state = { instance: 'a', fit: true, workers: [worker], entries: [{ uid: 'u', late: 0 }] }
    let now: unknown = state
    const { reader, advance, told } = rig(() => now)
    await turn()
    const changes: readonly [string, unknown][] = [
      ['a later time', { ...state, workers: [{ ...worker, applied: 2 }] }],
      ['one kind of object', { ...state, workers: [{ ...worker, revisions: { upstreams: 9, routes: 9 } }] }],
      ['the highest revision', { ...state, workers: [{ ...worker, revision: 10 }] }],
      ['a worker on its way out', { ...state, workers: [{ ...worker, exiting: true }] }],
      ['a worker that is unfit', { ...state, workers: [{ ...worker, fit: false }] }],
      ['another worker', { ...state, workers: [{ ...worker, pid: 2 }] }],
      ['a request after the ack', { ...state, entries: [{ uid: 'u', late: 1 }] }],
      ['another instance', { ...state, instance: 'b' }],
      ['no answer', new Error('refused')]
    ]
    const heard: string[] = []
    for (const [what, changed] of changes) {
      now = state
      await advance(5000)
      const before = told()
      now = changed
      await advance(5000)
      await advance(5000)
      if (told() > before) heard.push(`${what}: ${told() - before}`)
    }
    await reader.stop()
    expect(heard).to.deep.equal(changes.slice(1).map(([what]) => `${what}: 1`))
  })

  it('stops reading when stopped, and leaves no alarm', async () => {
    const { reader, clock, advance, reads } = rig(() => ({ instance: 'a', workers: [] }))
    await turn()
    await reader.stop()
    await advance(60_000)
    expect(reads()).to.equal(1)
    expect(clock.pending).to.equal(0)
  })
})
