import { expect } from 'chai'
import type { Drain, Proven } from '../../../../agent/rules/drain/drain.ts'
import { eventObject, eventText, createEvents } from '../../../../agent/report/tell/events.ts'
import { waiting } from '../../../build/drain.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'
import { waitingDrain, waitingView } from '../../../build/snapshot.ts'

const { pod, uid, decidedAt, witnesses, since, deadline, stops, ports, isWhole } = waitingDrain()
const base = { pod, uid, decidedAt, witnesses, since, deadline, stops, ports, isWhole }
const moments = { ...waitingView().moments, confirmedAt: since + 41 }
const confirmed = { name: 'apisix-0', grade: 'barrier', at: 5, why: '' } as const
const behind = { name: 'apisix-1', grade: undefined, at: undefined, why: 'no connection' } as const
const proven = (differs: Partial<Proven>): Proven =>
  ({
    kind: 'proven',
    grade: 'barrier',
    places: 1,
    forced: false,
    succeeded: [],
    at: since + 41,
    why: '',
    gateways: [confirmed],
    holders: [],
    ...differs
  }) as Proven
const PROVEN: Drain = {
  ...base,
  phase: 'proven',
  at: since + 41,
  verdict: proven({ why: 'sealed, and nothing is in flight', gateways: [confirmed, confirmed] })
}

describe('event', () => {
  it('reports the number of gateways, the time taken, and the evidence', () => {
    expect(eventText(PROVEN, moments)).to.deep.equal({
      type: 'Normal',
      reason: 'Drained',
      note: 'out of 2 gateways in 41ms, evidence barrier: sealed, and nothing is in flight'
    })
    expect(eventText(PROVEN, { ...moments, idleAt: since + 9002 })?.note).to.equal(
      'out of 2 gateways in 41ms, idle after 9002ms, evidence barrier: sealed, and nothing is in flight'
    )
    const notRouted: Drain = {
      ...base,
      phase: 'proven',
      at: since,
      verdict: proven({ places: 0 })
    }
    expect(eventText(notRouted, moments)?.note).to.equal('no gateway routes to it, evidence barrier')
  })

  it('warns if no other pod could take over: users may have got 503', () => {
    const forced: Drain = {
      ...PROVEN,
      verdict: proven({ forced: true, why: 'no other pod could take over in time' })
    }
    expect(eventText(forced, moments)).to.include({ type: 'Warning', reason: 'Drained' })
  })

  it('warns if nothing can be proved', () => {
    const verdict = waiting({ why: 'nothing can be proved', vain: true })
    expect(eventText({ ...base, phase: 'expired', at: 1, verdict }, moments)).to.deep.equal({
      type: 'Warning',
      reason: 'NotProved',
      note: 'not proved: nothing can be proved'
    })
  })

  it('warns if nothing was proved, and names the gateway', () => {
    const verdict = waiting({
      why: 'one gateway is missing',
      gateways: [confirmed, behind]
    })
    expect(eventText({ ...base, phase: 'expired', at: 1, verdict }, moments)).to.deep.equal({
      type: 'Warning',
      reason: 'NotProved',
      note: 'not proved before the deadline: one gateway is missing; apisix-1: no connection'
    })
  })

  it('reports an undone drain, and nothing about a drain in progress', () => {
    const undone = eventText({ ...base, phase: 'undone', at: 1, why: 'the container is back' }, moments)
    expect(undone).to.include({ reason: 'DrainUndone', note: 'the container is back' })
    expect(eventText(waitingDrain(), moments)).to.equal(undefined)
  })

  it('fits the limits of the API server, whatever the names and reasons are', () => {
    const why = 'x'.repeat(5000)
    const text = eventText({ ...base, phase: 'undone', at: 1, why }, moments)!
    const long = eventObject(
      { kind: 'Pod', namespace: 'shop', name: 'p'.repeat(253), uid },
      text,
      '',
      1_700_000_000_123.25,
      'agent-0'
    )
    expect(long.note).to.have.length(1000)
    expect(long.metadata.name).to.have.length(253)
    expect(long.metadata.name).to.match(/^p+\.[0-9a-f]+$/)
    expect(long).to.deep.include({
      apiVersion: 'events.k8s.io/v1',
      eventTime: '2023-11-14T22:13:20.123000Z',
      regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'p'.repeat(253), uid }
    })
  })
})

describe('the name of an Event', () => {
  const DRAINED = eventText(PROVEN, moments)!
  const nameOf = (again = '', of = uid, text = DRAINED, at = 1, agent = 'agent-0') =>
    eventObject({ kind: 'Pod', namespace: 'shop', name: 'web-1', uid: of }, text, again, at, agent).metadata
      .name

  it('is the same for all agents at all times, so that the Event is written once', () => {
    expect(nameOf('', uid, DRAINED, 99, 'agent-1')).to.equal(nameOf())
  })

  it('differs by content, by pod, and after its containers were restarted', () => {
    const undone = { ...DRAINED, reason: 'DrainUndone' as const }
    const others = [nameOf('', uid, undone), nameOf('', 'another' as typeof uid), nameOf('web=2')]
    expect(new Set([nameOf(), ...others]).size).to.equal(4)
  })
})

describe('events', () => {
  type Answer = () => Promise<{ readonly status: number }>
  const setUp = (answer: Answer = async () => ({ status: 201 })) => {
    const clock = manualClock()
    const { log, lines } = memoryLog()
    const sent: { path: string; body: unknown }[] = []
    const events = createEvents({
      post: (path, body, signal) => {
        sent.push({ path, body })
        return Promise.race([
          answer(),
          new Promise<never>((_, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error))
          )
        ])
      },
      clock,
      log,
      instance: 'agent-0'
    })
    /** Lets the code after an answer run, and moves the clock over its pauses. */
    const pass = async (pauses: number) => {
      for (let i = 0; i < pauses; i++) {
        await new Promise(resolve => void setImmediate(resolve))
        clock.advance(50)
      }
      await new Promise(resolve => void setImmediate(resolve))
    }
    return { events, sent, lines, pass }
  }

  it('writes one after the other, at a bounded rate', async () => {
    const { events, sent, pass } = setUp()
    for (let i = 0; i < 5; i++) events.add(PROVEN, moments)
    await pass(0)
    expect(sent).to.have.length(1)
    expect(sent[0]?.path).to.equal('/apis/events.k8s.io/v1/namespaces/shop/events')
    await pass(2)
    expect(sent).to.have.length(3)
    await pass(3)
    expect(sent).to.have.length(5)
  })

  it('logs failures once, and continues', async () => {
    const statuses = [403, 403, 201, 500, 409]
    const { events, sent, lines, pass } = setUp(async () => ({ status: statuses.shift() ?? 201 }))
    for (let i = 0; i < 5; i++) events.add(PROVEN, moments)
    await pass(6)
    expect(sent).to.have.length(5)
    expect(lines.filter(line => line['level'] === 'warn')).to.have.length(2)
  })

  it('drops Events when the queue is full, and never blocks the caller', async () => {
    const { events, sent, pass } = setUp()
    for (let i = 0; i < 1100; i++) events.add(PROVEN, moments)
    await pass(1100)
    expect(sent).to.have.length(1001)
  })

  it('stops in the middle of a call, and accepts nothing more', async () => {
    const { events, sent, pass } = setUp(() => new Promise(() => {}))
    events.add(PROVEN, moments)
    events.add(PROVEN, moments)
    await events.stop()
    events.add(PROVEN, moments)
    await pass(3)
    expect(sent).to.have.length(1)
  })
})
