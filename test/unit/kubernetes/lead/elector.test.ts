import { expect } from 'chai'
import { systemClock, type Clock } from '../../../../agent/base/clock.ts'
import {
  createElector,
  type ElectorOptions,
  type Timings,
  alone,
  type Leader
} from '../../../../agent/kubernetes/lead/elector.ts'
import { createConnection } from '../../../../agent/kubernetes/transport/connection.ts'
import { endAll, type Ends } from '../../../../sandbox/ends.ts'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { silent, until } from '../../../build/apisix.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const PLACE = { namespace: 'default', name: 'drain' }
const QUICK: Partial<Timings> = { durationMs: 2000, everyMs: 50, patienceMs: 5000 }

describe('elector', () => {
  const ends: Ends = []
  let kubernetes: Kubernetes
  beforeEach(async () => {
    kubernetes = await startKubernetes({ tls: false })
    ends.push(() => kubernetes.close())
  })
  afterEach(() => endAll(ends))

  /** Starts an agent's elector on its own connection. With `making`, the answer to the creation of its Lease waits for that promise. */
  const elect = (
    identity: string,
    differs: Partial<ElectorOptions> = {},
    making?: PromiseWithResolvers<void>
  ) => {
    const connection = createConnection(
      {
        origin: kubernetes.url,
        tls: () => Promise.resolve({}),
        headers: () => Promise.resolve({ authorization: `Bearer ${kubernetes.token}` }),
        refused: () => {}
      },
      systemClock
    )
    const calls: string[] = []
    let cut = false
    const leader = createElector({
      place: PLACE,
      identity,
      async call(method, path, body, signal) {
        calls.push(method)
        if (cut) throw new Error('cut')
        const reply = await connection.request(method, path, body, signal)
        if (method === 'POST') await making?.promise
        return reply
      },
      clock: systemClock,
      log: silent,
      timings: QUICK,
      ...differs
    })
    ends.push(async () => {
      await leader.release()
      await connection.close()
    })
    const kill = () => (cut = true)
    return { leader, calls, kill, mend: () => (cut = false), answer: () => making?.resolve() }
  }
  const lease = () => kubernetes.store.get('leases', PLACE.namespace, PLACE.name)?.spec
  const follows = (leader: Leader) => leader.status(systemClock.now()).why === 'another agent holds the Lease'
  const only = (...leaders: Leader[]) => leaders.filter(leader => leader.leads()).length === 1

  it('creates the Lease and leads; the next agent follows', async () => {
    const first = elect('a').leader
    expect(first.leads()).to.equal(false)
    await until('it leads', () => first.leads())
    const second = elect('b').leader
    await until('it knows', () => follows(second))
    expect(second.status(systemClock.now())).to.deep.include({
      leads: false,
      holder: 'a',
      lease: 'default/drain'
    })
    expect(first.status(systemClock.now())).to.include({ leads: true, holder: 'a' })
    expect(lease()).to.include({ holderIdentity: 'a', leaseDurationSeconds: 2, leaseTransitions: 0 })
  })

  it('the next agent leads at once when the Lease is released', async () => {
    const first = elect('a').leader
    await until('it leads', () => first.leads())
    const second = elect('b', { timings: { ...QUICK, durationMs: 60_000 } }).leader
    await until('it follows', () => follows(second))
    await first.release()
    expect(first.leads()).to.equal(false)
    await until('the other leads', () => second.leads() && second.status(systemClock.now()).holder === 'b')
    expect(lease()).to.include({ holderIdentity: 'b', leaseTransitions: 2 })
  })

  it('a second release waits for the first one', async () => {
    const { leader, answer } = elect('a', {}, Promise.withResolvers<void>())
    await until('the API server has it', () => lease()?.holderIdentity === 'a')
    void leader.release()
    const again = leader.release()
    answer()
    await again
    expect(lease()?.holderIdentity).to.equal('')
  })

  it('takes over from a dead leader only once its Lease has expired', async () => {
    const first = elect('a')
    await until('it leads', () => first.leader.leads())
    const second = elect('b').leader
    await until('it follows', () => follows(second))
    const from = systemClock.now()
    first.kill()
    await until('the other holds it', () => lease()?.holderIdentity === 'b')
    // The Lease lasts 2 s from the leader's last renewal, which may be up to 1 s before the leader's end.
    expect(systemClock.now() - from).to.be.at.least(2000 - 1000)
    first.mend()
    await until('the first follows', () => follows(first.leader))
  })

  it('trusts only its own clock: times an hour ahead or behind change nothing', async () => {
    for (const hours of [-1, 1]) {
      const name = `skewed-${hours + 1}`
      const ahead = hours * 3_600_000
      const clock: Clock = {
        ...systemClock,
        now: () => systemClock.now() + ahead,
        alarm: (at, wake) => systemClock.alarm(at - ahead, wake)
      }
      const place = { ...PLACE, name }
      // The Lease is so long that it cannot expire, even if this machine stalls.
      const timings = { ...QUICK, durationMs: 60_000 }
      const first = elect('a', { clock, place, timings })
      await until('it leads', () => first.leader.leads())
      const second = elect('b', { place, timings })
      await until('the second follows', () => follows(second.leader))
      const since = [first.calls.length, second.calls.length]
      await until('both have looked again', () =>
        [first, second].every(({ calls }, i) => calls.length > since[i]! + 3)
      )
      expect([first.leader.leads(), second.leader.leads()]).to.deep.equal([true, false])
    }
  })

  it('lets every agent act while the Lease is unavailable, and one again when it is available', async () => {
    const undo = kubernetes.faults.deny({ verb: '*', resource: 'leases' })
    const all = [elect('a').leader, elect('b').leader]
    await until('both act', () => all.every(leader => leader.leads()))
    expect(all[0]?.status(systemClock.now()).why).to.match(/cannot be had, so every agent does all.*403/)
    undo()
    await until('one leads', () => only(...all) && all.some(follows))
  })

  it('renews with one call, and checks with one call', async () => {
    const first = elect('a')
    await until('it leads', () => first.leader.leads())
    first.calls.length = 0
    await until('it has renewed', () => first.calls.length >= 3)
    expect(new Set(first.calls)).to.deep.equal(new Set(['PUT']))
    const second = elect('b')
    await until('it has looked', () => second.calls.length >= 3)
    expect(new Set(second.calls)).to.deep.equal(new Set(['GET']))
  })

  it('aborts a call that hangs, and stops within the time limit of one call', async () => {
    const clock = manualClock()
    const signals: AbortSignal[] = []
    const leader = createElector({
      place: PLACE,
      identity: 'a',
      call: (_method, _path, _body, signal) =>
        new Promise((_, reject) => {
          signals.push(signal)
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        }),
      clock,
      log: silent
    })
    await Promise.resolve()
    expect(leader.leads()).to.equal(false)
    clock.advance(3001)
    await new Promise(resolve => void setImmediate(resolve))
    expect([signals[0]?.aborted, leader.leads()]).to.deep.equal([true, true])
    await leader.release()
  })
})

describe('alone', () => {
  it('always leads', async () => {
    const leader = alone('there is no election')
    await leader.release()
    expect(leader.leads()).to.equal(true)
    expect(leader.status(0)).to.deep.equal({
      leads: true,
      holder: undefined,
      lease: undefined,
      why: 'there is no election'
    })
  })
})
