import { expect } from 'chai'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import { createStatuses } from '../../../../agent/round/gather/drain-status.ts'
import { emitEvents } from '../../../../agent/report/tell/events.ts'
import { waitingDrain } from '../../../build/snapshot.ts'
import { createAnswers } from '../../../../agent/report/show/record.ts'
import type { BarrierState } from '../../../../agent/gateway/apisix/barrier-wire.ts'
import type { PodUid } from '../../../../agent/rules/drain/facts.ts'
import { ackFor } from '../../../build/serve.ts'
import { pod } from '../../../build/pod.ts'

describe('emitEvents', () => {
  const WAITING = waitingDrain()
  const UNDONE: Drain = { ...WAITING, phase: 'undone', at: 1, why: 'the container is back' }
  const status = createStatuses().of(WAITING.uid)

  it('reports once per drain, by the leader, when the drain is over', () => {
    const said: Drain['uid'][] = []
    let leads = true
    const observer = emitEvents({ add: drain => void said.push(drain.uid) }, { leads: () => leads })
    observer.drain?.(undefined, WAITING, status)
    expect(said).to.deep.equal([])
    observer.drain?.(WAITING, UNDONE, status)
    observer.drain?.(UNDONE, undefined, status)
    leads = false
    observer.drain?.(WAITING, UNDONE, status)
    expect(said).to.deep.equal([WAITING.uid])
  })
})

const listed = (uid: string, answer?: string, answeredFor = 2): BarrierState => ({
  uid,
  ip: '10.0.0.1',
  state: 'sealed',
  ttl: 30,
  bypasses: 0,
  late: 0,
  inflight: { requests: 0, long: 0 },
  ...(answer !== undefined && { answer, answeredFor })
})

describe('answers that agents tell each other', () => {
  const ack = ackFor(pod('web-1'))
  const uid = ack.pod.uid as PodUid
  const told = (why = '') => {
    const agent = createAnswers('agent-a')
    agent.note({ ...ack, why }, 1000)
    return agent.own.get(uid)!.text
  }

  it('are read once, with the time by the own clock', () => {
    const other = createAnswers('agent-b')
    other.read([listed(uid, told('why')), listed('silent')], 9000)
    other.read([listed(uid, told('why'))], 9500)
    const { namespace, name } = ack.pod
    const { status, result, evidence, elapsedMs } = ack
    const shown = { pod: { namespace, name, uid }, status, result, evidence, elapsedMs, why: 'why' }
    expect(other.take()).to.deep.equal([{ at: 7000, by: 'agent-a', ack: shown }])
    expect(other.take()).to.deep.equal([])
  })

  it('are not read from a text that is none', () => {
    const other = createAnswers('agent-b')
    const change = (differs: object) => JSON.stringify({ ...(JSON.parse(told()) as object), ...differs })
    const wrong = [
      '',
      '{',
      '[]',
      change({ status: 204 }),
      change({ result: '<b>' }),
      change({ elapsedMs: -1 })
    ]
    other.read(
      [...wrong, change({ evidence: 'certain' }), change({ why: 'x'.repeat(999) })].map((text, i) =>
        listed(`uid-${i}`, text)
      ),
      0
    )
    expect(other.take()).to.deep.equal([])
    other.read([listed('other', change({ unknown: 1 }))], 0)
    expect(other.take()).to.have.length(1)
  })

  it('have at most 1024 bytes, and end after ten minutes', () => {
    expect(Buffer.byteLength(told('\u{1F600}"'.repeat(500)))).to.be.at.most(1024)
    const agent = createAnswers('agent-a')
    agent.note(ack, 0)
    agent.note(ackFor(pod('web-2')), 600_001)
    expect([...agent.own.keys()]).to.deep.equal([ackFor(pod('web-2')).pod.uid])
    agent.read([listed(ackFor(pod('web-2')).pod.uid, told())], 600_002)
    expect(agent.take(), 'its own answer is certain').to.deep.equal([])
  })
})
