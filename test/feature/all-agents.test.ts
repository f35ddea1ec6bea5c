import { expect } from 'chai'
import { systemClock, type Clock } from '../../agent/base/clock.ts'
import { same } from '../../agent/base/same.ts'
import { statusOf } from '../../agent/doctor/status-report.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { TestAgent } from '../build/agent.ts'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** Every agent has its own address, as a pod has, and the same port. No other server may listen on this port on all addresses. */
const PORT = 29280
const TOKEN = 'edd1'

const asked = async (host: string): Promise<Snapshot> => {
  const response = await fetch(`http://${host}:${PORT}/api/state`, {
    headers: { authorization: `Bearer ${TOKEN}` }
  })
  expect(response.status).to.equal(200)
  return (await response.json()) as Snapshot
}

/** Polls until the answer is as expected. */
async function shows(
  what: string,
  host: string,
  isSo: (state: Snapshot) => boolean,
  withinMs?: number
): Promise<Snapshot> {
  let last: Snapshot | undefined
  let asking = false
  const look = async () => {
    asking = true
    last = await asked(host).finally(() => (asking = false))
  }
  await until(
    what,
    () => {
      if (last && isSo(last)) return true
      if (!asking) void look().catch(() => {})
      return false
    },
    withinMs
  )
  return last!
}

const answersOf = ({ acks }: Snapshot) => acks.map(({ ack }) => ack.pod.name).toSorted()
const linksOf = ({ agents }: Snapshot) => agents.map(({ link }) => link)
const drainsOf = ({ drains, past }: Snapshot) => [...drains, ...past]

/** A rig whose agents have `hosts` as peers, and functions that start an agent or end a pod. */
async function pair(
  start: (differs: object) => Promise<Rig>,
  hosts: readonly string[],
  clock: () => Clock = () => systemClock
) {
  const peers = hosts.map(host => `${host}:${PORT}`).join()
  const rig = await start({
    agent: false,
    gateways: 2,
    barrier: true,
    clock,
    config: {
      SERVE_PORT: String(PORT),
      SERVE_DASHBOARD_ENABLED: 'true',
      SERVE_DASHBOARD_TOKEN_ENV: 'KEY',
      SERVE_DASHBOARD_PEERS: peers,
      LEADER_LEASE: 'default/drain'
    }
  })
  const agents: TestAgent[] = []
  const agentAt = async (host: string): Promise<TestAgent> => {
    const agent = await rig.startAgent({ SERVE_HOST: host })
    agents.push(agent)
    await until('it is ready', () => agent.missing().length === 0)
    return agent
  }
  const endAt = async (name: string, host: string): Promise<void> => {
    const pod = rig.pod(name)
    const stays = rig.pod(`${name}-stays`)
    rig.upstream(name, [pod, stays])
    await rig.applied()
    await until('every agent has seen the pods', () =>
      agents.every(agent => agent.closed || (agent.knows(pod.ip) && agent.knows(stays.ip)))
    )
    await shows('both list it', host, ({ holders }) => holders.some(({ key }) => key === `upstreams/${name}`))
    rig.end(pod)
    const { status, body } = await callHook({ host, port: PORT, from: pod.ip })
    expect([status, body.evidence]).to.deep.equal([200, 'barrier'])
    rig.gone(pod)
  }
  /** Starts an agent at each address; resolves when they see each other. */
  const agentsAt = async (a: string, b: string) => {
    const both = [await agentAt(a), await agentAt(b)] as const
    for (const host of [a, b])
      await shows('it sees the other', host, state => linksOf(state).join() === 'self,live')
    return both
  }
  return { rig, agentAt, agentsAt, endAt }
}

/** The drain of the pod `slow` goes on, and one agent holds its hook. */
const holdsSlow = ({ drains }: Snapshot) =>
  drains.some(({ pod, phase, hooks }) => pod === 'slow' && phase === 'draining' && hooks === 1)

/** A clock that is this many ms ahead of this machine's. */
const aheadClock = (ms: number): Clock => ({
  ...systemClock,
  now: () => systemClock.now() + ms,
  alarm: (at, wake) => systemClock.alarm(at - ms, wake)
})

/** Waits until both agents show the same evidence of the same drains. */
async function agree(a: string, b: string): Promise<void> {
  const byUid = (state: Snapshot) =>
    drainsOf(state)
      .map(({ uid, moments, verdict, gateways }) => ({ uid, moments, verdict, gateways }))
      .toSorted((left, right) => (left.uid < right.uid ? -1 : 1))
  let shown: unknown[] = []
  const isSame = async () => {
    shown = (await Promise.all([asked(a), asked(b)])).map(byUid)
    return same(shown[0], shown[1])
  }
  // If they still differ, the comparison names the difference.
  await until('both show the same', isSame).catch(() => expect(shown[0]).to.deep.equal(shown[1]))
}

describe('feature: one page for all agents (D7)', () => {
  const test = sideBySide()

  test('each agent shows the drains and answers of both, also after one of them was killed and restarted', async start => {
    const [a, b] = ['127.77.1.1', '127.77.1.2']
    const { agentAt, agentsAt, endAt } = await pair(start, [a, b])
    const [, second] = await agentsAt(a, b)
    await endAt('web-0', a)
    await endAt('web-1', b)
    const isWhole = (state: Snapshot) =>
      answersOf(state).join() === 'web-0,web-1' &&
      drainsOf(state).filter(({ moments }) => moments.ackAt !== null && moments.goneAt !== null).length === 2
    const [first, other] = [
      await shows('the first shows both', a, isWhole),
      await shows('so does the second', b, isWhole)
    ]
    for (const state of [first, other]) {
      expect(linksOf(state)).to.deep.equal(['self', 'live'])
      expect(state.totals).to.include({ drains: 2, hooks: 2 })
      expect(state.totals.graded.barrier).to.equal(2)
      expect(state.lags.map(({ uid }) => uid)).to.have.length(2)
      expect(state.agents.filter(({ leads }) => leads)).to.have.length(1)
      expect(state.agents.map(({ proving }) => proving)).to.deep.equal([2, 2])
    }
    expect(first.agents[0]?.id).to.equal(other.agents[1]?.id)
    await agree(a, b)

    await second.close()
    const alone = await shows('the second is lost', a, state => linksOf(state).join() === 'self,lost')
    expect(alone.agents[1]?.problem).to.match(/^no answer from 127\.77\.1\.2:29280 \(ECONNREFUSED\)/)
    expect(isWhole(alone), 'its last known data stays').to.equal(true)
    expect(statusOf(alone).rest).to.include('1 of 2 agents does not answer')

    await agentAt(b)
    const again = await shows('the new start shows what the old one answered', b, isWhole)
    expect(again.totals).to.include({ drains: 2, hooks: 2 })
    expect(again.agents[0]?.id).not.to.equal(other.agents[0]?.id)
    await shows('it is seen again', a, state => linksOf(state).join() === 'self,live')
    await endAt('web-2', b)
    for (const host of [a, b]) {
      const state = await shows(
        'all three',
        host,
        ({ totals, acks }) => totals.drains === 3 && acks.length === 3
      )
      expect(state.totals.hooks).to.equal(3)
    }
  })

  test('an agent that was never reached is shown with the reason, and delays no hook', async start => {
    const [a, nobody] = ['127.77.2.1', '127.77.2.9']
    const { agentAt, endAt } = await pair(start, [a, nobody, 'no-such-name.invalid'])
    await agentAt(a)
    await endAt('web-0', a)
    const state = await shows('both are lost', a, ({ agents }) => agents.length === 3)
    expect(state.agents[1]).to.include({ link: 'lost', name: `${nobody}:${PORT}`, version: null })
    expect(state.agents[1]?.problem).to.include('check that an agent runs there')
    expect(state.agents[2]?.problem).to.match(
      /^no-such-name\.invalid has no address \(\w+\): check serve\.dashboard\.peers/
    )
    expect(answersOf(state)).to.deep.equal(['web-0'])
    expect(statusOf(state)).to.include({ level: 'busy', head: '2 of 3 agents do not answer.' })
  })

  test('two agents whose clocks differ by 3 s: each shows all times by its own clock', async start => {
    const [a, b] = ['127.77.3.1', '127.77.3.2']
    const AHEAD = 3000
    const clocks = [systemClock, aheadClock(AHEAD)]
    const { agentsAt, endAt } = await pair(start, [a, b], () => clocks.shift() ?? systemClock)
    await agentsAt(a, b)
    const spans: Record<string, readonly [number, number]> = {}
    for (const [name, host] of [
      ['web-0', a],
      ['web-1', b]
    ] as const) {
      const from = systemClock.now()
      await endAt(name, host)
      spans[name] = [from, systemClock.now()]
    }
    for (const [host, ahead, words] of [
      [a, 0, 'ahead of'],
      [b, AHEAD, 'behind']
    ] as const) {
      const { acks, past, agents } = await shows(
        'both drains are over',
        host,
        state =>
          state.acks.length === 2 &&
          state.past.filter(({ moments }) => moments.ackAt !== null && moments.goneAt !== null).length === 2
      )
      expect(agents[1]?.problem).to.match(new RegExp(`^its clock is [23]\\.\\d s ${words} this agent's`))
      const shown = [
        ...acks.map(({ at, ack }) => [ack.pod.name, at] as const),
        ...past.flatMap(({ pod, moments: { seenAt, hookAt, sealedAt, ackAt } }) =>
          [seenAt, hookAt, sealedAt, ackAt].map(at => [pod, at] as const)
        )
      ]
      expect(shown).to.have.length(10)
      for (const [pod, at] of shown) {
        const [from, to] = spans[pod]!
        // A round trip between the agents takes less than half of the difference.
        expect(at, pod).to.be.within(from + ahead - AHEAD / 2, to + ahead + AHEAD / 2)
      }
    }
  })

  test('an answer that an agent gives right before it ends is on the page of the other', async start => {
    const [a, b] = ['127.77.5.1', '127.77.5.2']
    const { agentsAt, endAt } = await pair(start, [a, b])
    const [, second] = await agentsAt(a, b)
    await endAt('web-0', b)
    await second.close()
    const state = await shows('it is lost', a, state => linksOf(state).join() === 'self,lost')
    expect(answersOf(state)).to.deep.equal(['web-0'])
    expect(state.totals).to.include({ drains: 1, hooks: 1 })
  })

  test('while the agents are replaced one by one, no page loses a drain or an answer', async start => {
    const [a, b] = ['127.77.4.1', '127.77.4.2']
    const { rig, agentAt, agentsAt, endAt } = await pair(start, [a, b])
    const [first, second] = await agentsAt(a, b)

    // One drain lasts for the whole test, because a request to its pod is in flight.
    const slow = rig.pod('slow', { graceSeconds: 300 })
    rig.upstream('slow', [slow])
    const backend = await rig.serve(slow)
    await rig.settled()
    for (const host of [a, b])
      await shows('it lists it', host, ({ holders }) => holders.some(({ key }) => key === 'upstreams/slow'))
    const request = fetch(`${rig.gateways[0]!.urls.proxy}/?hold`)
    await until('a request is at the pod', () => backend.open > 0)
    rig.upstream('slow', [slow, rig.pod('slow-stays')])
    rig.end(slow)
    const hookAt = (host: string) => callHook({ host, port: PORT, from: slow.ip })
    let hook = hookAt(b)
    await shows('its hook is held', a, holdsSlow)
    await until('it is listed no more', () => rig.nodes('upstreams/slow').length === 1)

    const answered: string[] = []
    const ends = async (name: string, host: string) => {
      await endAt(name, host)
      answered.push(name)
    }
    const isWhole = (state: Snapshot) =>
      holdsSlow(state) &&
      state.totals.drains === answered.length + 1 &&
      answersOf(state)
        .filter(pod => pod !== 'slow')
        .join() === answered.join() &&
      answered.every(name =>
        drainsOf(state).some(
          ({ pod, moments }) => pod === name && moments.ackAt !== null && moments.goneAt !== null
        )
      )
    /** Replaces the agent at `host`. The hook that it held is called again at the agent `other`, as a pod does. */
    const replace = async (old: TestAgent, host: string, other: string, names: readonly [string, string]) => {
      const first = hook.catch(() => 'broken off')
      await old.close()
      expect(await first).to.equal('broken off')
      hook = hookAt(other)
      await ends(names[0], other)
      await shows('the agent that stays has all', other, isWhole)
      const fresh = await agentAt(host)
      await shows('the new agent has all', host, isWhole)
      await ends(names[1], host)
      for (const one of [a, b]) await shows('both have all', one, isWhole)
      return fresh
    }
    await ends('web-0', a)
    await ends('web-1', b)
    // Agents ask each other once a second.
    for (const one of [a, b]) await shows('both have the first two', one, isWhole)
    await replace(second, b, a, ['web-2', 'web-3'])
    await replace(first, a, b, ['web-4', 'web-5'])

    backend.release()
    await request
    // When the answering agent started, no holder listed the pod any more. The agent still waited for the request.
    expect((await hook).body).to.include({ result: 'not-routed', evidence: 'barrier' })
    rig.gone(slow)
    for (const host of [a, b]) {
      const state = await shows(
        'all is over',
        host,
        ({ drains, acks, totals }) => drains.length === 0 && acks.length === 7 && totals.drains === 7
      )
      expect(state.past.map(({ pod }) => pod).toSorted()).to.deep.equal(['slow', ...answered])
      expect(state.totals).to.include({ drains: 7, expired: 0, hooks: 7 })
    }
  })
})
