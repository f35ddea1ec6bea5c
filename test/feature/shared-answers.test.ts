import { expect } from 'chai'
import { systemClock } from '../../agent/base/clock.ts'
import { statusOf } from '../../agent/doctor/status-report.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { TestAgent } from '../build/agent.ts'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** Every agent has its own address, as a pod has, and the same port. */
const PORT = 29280

const asked = async (host: string): Promise<Snapshot> =>
  (await (await fetch(`http://${host}:${PORT}/api/state`)).json()) as Snapshot

const answersOf = ({ acks }: Snapshot) => acks.map(({ ack }) => ack.pod.name).toSorted()

/** Resolves with the state of the agent once it shows exactly these answers. */
async function shows(host: string, names: readonly string[]): Promise<Snapshot> {
  let last: Snapshot | undefined
  await until(`${host} shows ${names.join()}`, async () => {
    last = await asked(host)
    return answersOf(last).join() === names.join()
  }).catch(() => expect(last && answersOf(last)).to.deep.equal(names))
  return last!
}

/** A rig with two gateways, and functions that start an agent or end a pod. */
async function setUp(start: (differs: object) => Promise<Rig>) {
  const rig = await start({
    agent: false,
    gateways: 2,
    barrier: true,
    config: {
      SERVE_PORT: String(PORT),
      SERVE_DASHBOARD_ENABLED: 'true',
      SERVE_DASHBOARD_AUTH: 'none',
      LEADER_LEASE: 'default/drain'
    }
  })
  const agents: TestAgent[] = []
  const agentAt = async (host: string): Promise<TestAgent> => {
    const agent = await rig.readyAgent({ SERVE_HOST: host })
    agents.push(agent)
    return agent
  }
  /** Ends a pod, whose hook this agent answers. Returns when it was called, and when its answer was here. */
  const endAt = async (name: string, host: string): Promise<{ called: number; answered: number }> => {
    const pod = rig.pod(name)
    const stays = rig.pod(`${name}-stays`)
    rig.upstream(name, [pod, stays])
    await rig.applied()
    await until('every agent has seen all of it', () =>
      agents.every(
        agent =>
          agent.closed || (agent.knows(pod.ip) && agent.knows(stays.ip) && agent.nodes(`upstreams/${name}`))
      )
    )
    rig.end(pod)
    const called = systemClock.now()
    const { status, body } = await callHook({ host, port: PORT, from: pod.ip })
    expect([status, body.evidence]).to.deep.equal([200, 'barrier'])
    const answered = systemClock.now()
    rig.gone(pod)
    return { called, answered }
  }
  return { rig, agentAt, endAt }
}

describe('feature: the entries tell every agent the answers of all (D7)', () => {
  const test = sideBySide()

  test('both agents show each answer once, at the same time, also one that was killed and started again', async start => {
    const [a, b] = ['127.77.1.1', '127.77.1.2']
    const { agentAt, endAt } = await setUp(start)
    await agentAt(a)
    const second = await agentAt(b)
    const at: Record<string, Awaited<ReturnType<typeof endAt>>> = {
      'web-0': await endAt('web-0', a),
      'web-1': await endAt('web-1', b)
    }
    const same = async (names: readonly string[]) => {
      for (const host of [a, b]) {
        const state = await shows(host, names)
        for (const { at: shown, ack } of state.acks)
          // an age reaches the other agent by a read: it is off by at most the time that the read took
          expect(shown, `${ack.pod.name} at ${host}`).to.be.within(
            at[ack.pod.name]!.called - 1000,
            at[ack.pod.name]!.answered + 1000
          )
        const { answers } = statusOf(state)
        expect(answers.map(({ pod }) => pod.replace(/.*\//, '')).toSorted()).to.deep.equal(names)
        expect(answers.every(one => one.status === 200 && one.evidence === 'barrier')).to.equal(true)
      }
    }
    await same(['web-0', 'web-1'])
    for (const host of [a, b])
      await until('both know when the hook of each drain was answered', async () => {
        const { drains, past } = await asked(host)
        return [...drains, ...past].every(({ moments }) => moments.ackAt !== null)
      })

    await second.close('SIGKILL')
    at['web-2'] = await endAt('web-2', a)
    await agentAt(b)
    await same(['web-0', 'web-1', 'web-2'])
    at['web-3'] = await endAt('web-3', b)
    await same(['web-0', 'web-1', 'web-2', 'web-3'])
    expect((await asked(b)).totals.hooks, 'its own count').to.equal(1)
  })

  test('an answer that an agent gives right before it ends is on the page of the other', async start => {
    const [a, b] = ['127.77.2.1', '127.77.2.2']
    const { agentAt, endAt } = await setUp(start)
    await agentAt(a)
    const second = await agentAt(b)
    await endAt('web-0', b)
    await second.close()
    await shows(a, ['web-0'])
  })
})
