import { waitFor } from '../../sandbox/wait-for.ts'
import type { HookReply } from '../build/hook.ts'
import type { TestPod } from '../build/pods.ts'
import { startCallers, type Callers } from './callers.ts'
import { forAll, startPlace, type Place } from './place.ts'
import { useOf } from './process-use.ts'
import { ratio, spread, type Spread } from './stats.ts'

/** Several pods of one upstream end at the same moment, and each hook is called. */
export interface AtOnceCase {
  readonly ending: number
  /** So many more pods end, each behind an upstream of its own: the only pod of a StatefulSet, or of a workload at 0. */
  readonly whole?: number
  /** The number of nodes in the upstream of these pods. */
  readonly nodes: number
  /** Other upstreams, with two nodes each. */
  readonly holders: number
  readonly gateways: number
  /** The number of pods that the agent drains first, so that its code is compiled. 0: the agent has just started. */
  readonly before: number
}

export interface AtOnceResult extends AtOnceCase {
  readonly hookMs: Spread
  /** Answers by result and evidence. */
  readonly answers: Readonly<Record<string, number>>
  /** All writes until the answer to the last hook. */
  readonly adminWrites: number
  /** The puts for each gateway, on average. */
  readonly barrierPuts: number
  readonly barrierPolls: number
  /** The CPU time of the agent, from the first deletion to the last answer. */
  readonly agentCpuMs: number
}

const GRACE_SECONDS = 60
const WARM_AT_ONCE = 25

export async function atOnce(what: AtOnceCase): Promise<AtOnceResult> {
  let web: TestPod[] = []
  let whole: TestPod[] = []
  const callers = await startCallers()
  const place = await startPlace({ gateways: what.gateways }, async place => {
    web = Array.from({ length: what.nodes + what.before }, (_, i) =>
      place.pod(`web-${i}`, { graceSeconds: GRACE_SECONDS })
    )
    await place.upstream('web', web)
    whole = Array.from({ length: what.whole ?? 0 }, (_, i) => wholeWorkload(place, i))
    await forAll(whole, pod => place.upstream(pod.name, [pod]))
    const other = Array.from({ length: what.holders }, (_, i) => ({ id: `other-${i}`, at: i }))
    await forAll(other, ({ id, at }) =>
      place.upstream(
        id,
        [0, 1].map(step => web[what.ending + ((at + step) % (what.nodes - what.ending))]!)
      )
    )
  })
  try {
    await place.settled(what.holders + whole.length + 1)
    await warmUp(place, callers, web.splice(-what.before, what.before))
    return await measure(place, callers, [...web.slice(0, what.ending), ...whole], what)
  } finally {
    callers.close()
    await place.close()
  }
}

/** The only pod of a StatefulSet, or of a ReplicaSet that wants none any more. */
function wholeWorkload({ pod, kubernetes }: Omit<Place, 'agent'>, at: number): TestPod {
  const [kind, name] = [at % 2 === 0 ? 'StatefulSet' : 'ReplicaSet', `whole-${at}`]
  const made = pod(name, { graceSeconds: GRACE_SECONDS, owner: { kind, name } })
  if (kind === 'ReplicaSet')
    kubernetes.store.modify('replicasets', made.namespace, name, set => ({
      ...set,
      spec: { ...set.spec, replicas: 0 }
    }))
  return made
}

/** Drains these pods, a few at a time. Resolves when only their entries are left, which outlive the pods. */
async function warmUp(place: Place, callers: Callers, pods: readonly TestPod[]): Promise<void> {
  for (let from = 0; from < pods.length; from += WARM_AT_ONCE) {
    const some = pods.slice(from, from + WARM_AT_ONCE)
    for (const pod of some) place.end(pod)
    await callHooks(place, callers, some)
    for (const pod of some) place.gone(pod)
  }
  const drains = async () => (await place.metric('apisix_drain_pods_ending')) === 0
  if (pods.length > 0) await waitFor('the agent has forgotten those drains', drains)
}

function callHooks(place: Place, callers: Callers, pods: readonly TestPod[]) {
  const { hostname, port } = new URL(place.agent.url)
  return callers.call(pods.map(({ ip }) => ({ host: hostname, port: Number(port), from: ip })))
}

async function measure(
  place: Place,
  callers: Callers,
  ending: readonly TestPod[],
  what: AtOnceCase
): Promise<AtOnceResult> {
  const before = await counts(place)
  // The stand-in sends its first event after the last deletion. Then the hooks are called.
  for (const pod of ending) place.end(pod)
  const replies = await callHooks(place, callers, ending)
  const after = await counts(place)
  return {
    ...what,
    hookMs: spread(replies.map(({ ms }) => ms)),
    answers: tally(replies),
    adminWrites: after.writes - before.writes,
    barrierPuts: ratio(after.puts - before.puts, what.gateways),
    barrierPolls: ratio(after.polls - before.polls, what.gateways),
    agentCpuMs: after.cpuMs - before.cpuMs
  }
}

const tally = (replies: readonly HookReply[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { status, body } of replies) {
    const what = `${body.result ?? status}/${body.evidence ?? body.error ?? '-'}`
    counts[what] = (counts[what] ?? 0) + 1
  }
  return counts
}

async function counts(place: Place) {
  const call = (operation: string) =>
    place.metric('apisix_drain_call_duration_seconds_count', `api="barrier",operation="${operation}"`)
  return {
    writes: await place.metric('apisix_drain_admin_writes_total'),
    puts: await call('put'),
    polls: await call('inflight'),
    cpuMs: useOf(place.agent.pid).cpuMs
  }
}
