import * as fc from 'fast-check'
import { expect } from 'chai'
import { createBarrier, type Barrier } from '../../../../sandbox/apisix/barrier.ts'
import { chooseNode, takeSteps, type Held, type Picked } from '../../../../sandbox/apisix/pick.ts'
import type { Target } from '../../../../sandbox/apisix/balancer.ts'
import { createUpstream } from '../../../../sandbox/apisix/upstream.ts'

const ENDING = '10.0.0.1'

/** A sequence of steps. A worker's steps for each request: choose a node, maybe read the body, take the node, connect, finish. */
interface Actor {
  step(): void
}

interface Run {
  readonly barrier: Barrier
  /** The agent has acked: it saw in flight 0 after its seal. */
  acked: boolean
  /** Requests that connected to the ending node after the ack. */
  late: number
}

const workerActor = (run: Run, pid: number, nodes: readonly string[], retries: boolean): Actor => {
  const upstream = createUpstream(
    { nodes: Object.fromEntries(nodes.map(node => [`${node}:80`, 1])) },
    undefined
  )
  let tried = new Set<Target>()
  let first: Target | undefined
  let taking: Generator<void, Picked> | undefined
  let held: Held | undefined
  let connected = false
  const options = () => ({ upstream, barrier: run.barrier, pid, tried, key: '/' })
  return {
    step: () => {
      if (held && !connected) {
        connected = true
        if (run.acked && held.target.host === ENDING) run.late += 1
        return
      }
      if (held) {
        // The request has finished; or its node has failed, and the request picks another node.
        held.release()
        tried = retries && tried.size === 0 ? new Set([held.target]) : new Set()
        held = undefined
        connected = false
        return
      }
      if (!taking && !first && tried.size === 0) {
        // Before the next step, the other actors may drain, seal and ack.
        const choice = chooseNode(options())
        if (choice.kind === 'choice') first = choice.target
        return
      }
      taking ??= takeSteps(options(), first)
      const step = taking.next()
      if (!step.done) return
      taking = undefined
      first = undefined
      if (step.value.kind === 'held') held = step.value.held
      else tried = new Set()
    }
  }
}

/** The steps of the agent: drain, wait for 0 and no new bypass, seal, wait for 0, ack. */
const agentActor = (run: Run, seal: boolean): Actor => {
  const put = (state: 'draining' | 'sealed') =>
    run.barrier.entries.put({ uid: 'pod', ip: ENDING, port: undefined, state, ttl: 60 })
  const idle = (): boolean => run.barrier.inflight.of(ENDING, undefined).requests === 0
  let phase = 0
  const steps = [
    () => put('draining') !== undefined,
    () => idle(),
    () => !seal || put('sealed') !== undefined,
    () => idle(),
    () => (run.acked = true)
  ]
  return {
    step: () => {
      if (phase < steps.length && steps[phase]?.()) phase += 1
    }
  }
}

const play = (order: readonly number[], nodes: readonly string[], seal: boolean, retries: boolean): Run => {
  const run: Run = { barrier: createBarrier(), acked: false, late: 0 }
  const actors = [agentActor(run, seal), ...[1, 2, 3].map(pid => workerActor(run, pid, nodes, retries))]
  for (const who of order) actors[who % actors.length]?.step()
  return run
}

const orders = fc.array(fc.nat({ max: 3 }), { minLength: 30, maxLength: 120 })
const upstreams = fc.constantFrom([ENDING], [ENDING, '10.0.0.2'], [ENDING, '10.0.0.2', '10.0.0.3'])
const SETTINGS = { numRuns: 3000, seed: 20_261_121, endOnFailure: true }

describe('sandbox/apisix barrier: the guarantee', () => {
  it('does not wait for requests whose body is still being read: a choice alone is not counted', () => {
    const upstream = createUpstream({ nodes: { [`${ENDING}:80`]: 1, '10.0.0.2:80': 1 } }, undefined)
    const barrier = createBarrier()
    const options = { upstream, barrier, pid: 1, tried: new Set<Target>(), key: '/' }
    const chosen = [chooseNode(options), chooseNode(options)]
    expect(chosen.map(({ kind }) => kind)).to.deep.equal(['choice', 'choice'])
    expect(barrier.inflight.of(ENDING, undefined)).to.deep.equal({ requests: 0, long: 0 })
  })

  it('after the seal and in flight 0, no request reaches the node, in any interleaving', () => {
    let acks = 0
    fc.assert(
      fc.property(orders, upstreams, fc.boolean(), (order, nodes, retries) => {
        const run = play(order, nodes, true, retries)
        if (run.acked) acks += 1
        expect(run.late).to.equal(0)
      }),
      SETTINGS
    )
    expect(acks, 'runs that came to an ack').to.be.greaterThan(300)
  })

  it('would not hold without the seal: a gateway with no other node keeps bypassing', () => {
    const outcome = fc.check(
      fc.property(orders, order => play(order, [ENDING], false, false).late === 0),
      SETTINGS
    )
    expect(outcome.failed).to.equal(true)
  })

  it('would not hold if a worker read the entry before it counts', () => {
    const outcome = fc.check(
      fc.property(orders, order => playSwapped(order).late === 0),
      SETTINGS
    )
    expect(outcome.failed).to.equal(true)
  })
})

/** Plays the same agent with workers that wrongly read the entry before they count. */
const playSwapped = (order: readonly number[]): Run => {
  const run: Run = { barrier: createBarrier(), acked: false, late: 0 }
  const worker = (pid: number): Actor => {
    let phase = 0
    return {
      step: () => {
        const { barrier } = run
        if (phase === 0 && barrier.entries.look(ENDING, 80) === 'free') phase = 1
        else if (phase === 1) {
          barrier.inflight.up(pid, ENDING, 80, 'requests')
          phase = 2
        } else if (phase === 2) {
          if (run.acked) run.late += 1
          phase = 3
        } else if (phase === 3) {
          barrier.inflight.down(pid, ENDING, 80, 'requests')
          phase = 0
        }
      }
    }
  }
  const actors = [agentActor(run, true), worker(1), worker(2), worker(3)]
  for (const who of order) actors[who % actors.length]?.step()
  return run
}
