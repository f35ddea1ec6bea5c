import { expect } from 'chai'
import { startAgentProcess, type AgentProcess } from '../build/agent-process.ts'
import { until } from '../build/apisix.ts'
import { callHook, type HookReply } from '../build/hook.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const LEASE = { LEADER_LEASE: 'default/drain' }
const PODS = 6

/** Calls like the documented hook: retries at another agent if there is no answer or if the agent is stopping. */
async function hook(agents: readonly AgentProcess[], pod: TestPod, tries = 3): Promise<HookReply> {
  const [first, ...others] = agents as [AgentProcess, ...AgentProcess[]]
  const reply = await callHook({ port: first.port, from: pod.ip }).catch(() => undefined)
  if (reply?.status === 200) return reply
  if (tries === 1) throw new Error(`no answer for ${pod.name}: ${JSON.stringify(reply)}`)
  return hook([...others, first], pod, tries - 1)
}

const after = (ms: number) => new Promise<void>(resolve => void setTimeout(resolve, ms))

/** The moments at which the leader ends, counted from the simultaneous end of six pods. */
const MOMENTS: readonly (readonly [string, (rig: Rig, first: Promise<unknown>) => Promise<unknown>])[] = [
  ['before it can see that the pods end', async () => {}],
  ['while it is at it', () => after(30)],
  ['with a write under way', rig => until('it writes', () => rig.writes.length > 0)],
  ['when the first hook has been answered', (_rig, first) => first]
]

describe('feature: the leader, a process of its own, ends in mid-drain', () => {
  const test = sideBySide({ gateways: 2, agent: false, config: LEASE })

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    // At SIGTERM an agent finishes its work, so this signal comes only at moments at which it works.
    for (const [when, moment] of signal === 'SIGKILL' ? MOMENTS : MOMENTS.slice(1, 3)) {
      test(`by ${signal} ${when}: every hook is answered, every pod is out`, async start => {
        const rig = await start({ barrier: signal === 'SIGTERM' })
        rig.kubernetes.store.create('namespaces', { metadata: { name: 'shop' } })
        const pods = Array.from({ length: PODS }, (_, i) => rig.pod(`web-${i}`))
        // Each pod has its own upstream, so that the leader can also end between two writes.
        for (const [i, pod] of pods.entries()) rig.upstream(`u${i}`, [pod, rig.pod(`stays-${i}`)])
        await rig.applied()
        const leader = await startAgentProcess(rig)
        let follower: AgentProcess | undefined
        try {
          await until('it leads', () => leader.leads())
          follower = await startAgentProcess(rig)
          await until('the other knows', () => says(follower, 'another agent holds the Lease'))
          await play({ rig, pods, leader, follower, signal, moment })
        } finally {
          await Promise.all([leader.end('SIGKILL'), follower?.end('SIGKILL')])
        }
      })
    }
  }
})

const says = (agent: AgentProcess | undefined, why: string) =>
  agent?.lines().some(line => line['msg'] === 'leadership' && line['why'] === why) === true

async function play({
  rig,
  pods,
  leader,
  follower,
  signal,
  moment
}: {
  readonly rig: Rig
  readonly pods: readonly TestPod[]
  readonly leader: AgentProcess
  readonly follower: AgentProcess
  readonly signal: 'SIGKILL' | 'SIGTERM'
  readonly moment: (typeof MOMENTS)[number][1]
}): Promise<void> {
  rig.admin.faults.inject({ fault: { kind: 'slow', ms: 50 }, method: 'PATCH' })
  rig.admin.faults.inject({ fault: { kind: 'slow', ms: 50 }, method: 'PUT' })
  for (const pod of pods) rig.end(pod)
  const both = [leader, follower]
  const answers = pods.map((pod, i) => hook(i % 2 === 0 ? both : both.toReversed(), pod))
  await moment(rig, Promise.race(answers))
  const ended = leader.end(signal)
  for (const { body } of await Promise.all(answers)) {
    expect(body.result).to.equal('drained')
    expect(['observed', 'barrier']).to.include(body.evidence)
  }
  await until(
    'every pod is out',
    () => pods.every((_, i) => rig.nodes(`upstreams/u${i}`).length === 1),
    20_000
  )
  expect(await ended).to.equal(signal === 'SIGTERM' ? 0 : null)

  const told = rig.kubernetes.store.list('events').map(event => (event['regarding'] as { name: string }).name)
  expect(told, 'no drain has two Events').to.deep.equal([...new Set(told)])
}
