import { setTimeout as wait } from 'node:timers/promises'
import { until } from '../build/apisix.ts'
import type { TestAgent } from '../build/agent.ts'
import { startBackend, type Backend } from '../build/backend.ts'
import { get, startLoad } from '../build/load.ts'
import type { TestPod } from '../build/pods.ts'
import { PORTS, SHORT, startRig, type Rig } from '../build/rig.ts'
import { stalledMs } from '../build/stall.ts'
import { checkLeaks, checkOutcome } from './after.ts'
import { countingClock, type CountingClock } from '../build/counting-clock.ts'
import { FAULTS } from './faults.ts'
import { SLOW_LISTING_MS } from './faults-admin.ts'
import { isBack } from './faults-kubernetes.ts'
import { ownWay, type OwnWay } from '../build/own-way.ts'
import { askHook } from './hook.ts'
import { HOLDER, isWritten, ownerOf, startSyncs, type Owner } from './owner.ts'
import { hideGateway } from './hidden-gateway.ts'
import {
  describeScenario,
  has,
  isCounted,
  isOfOneWay,
  isUnfelt,
  isUnhurt,
  leavesGhosts,
  needsWays,
  type Moment,
  type Scenario
} from './scenario.ts'
import type { Stage } from './stage.ts'
import { whatAgentsSaid } from './what-agents-said.ts'

const GRACE_SECONDS = 4
/** A grace that leaves no time to hold a hook, in seconds. */
const SHORT_GRACE_SECONDS = 1
const LINGER_MS = 400
/** How long an entry outlives its drain if a pod of another namespace gets an address meanwhile, in ms. */
const STRANGER_LINGER_MS = 5000
/** For how long requests are watched after that, in ms: longer than an agent takes to put again what it misses. */
const STRANGER_MS = 2000
const PER_SECOND = 25
const SETTINGS = {
  ...SHORT,
  DRAIN_RESERVE: '1s'
}
/** The time until everything runs, on a busy machine. */
const START_MS = 120_000
/** The time from the removal of an address from the holder to the next pod with that address, in ms. */
const REUSE_MS = 1000
/** How long only the ending pods exist, in ms. */
const ALONE_MS = 400
/** The time until a node is out, after all faults were mended, on a busy machine; in ms. */
const OUT_MS = 20_000
/** The pause between two releases of the held requests, in ms. */
const RELEASE_MS = 50
/** The pause between two readiness probes of a gateway, in ms. */
const PROBE_MS = 20
/** The time from the kubelet's call of a hook to its report to the API server, in ms. The agent waits longer for the report (`QUICK`). */
const KUBELET_LATE_MS = 200
/** A pod of the same Service that the owner does not list here: another version. */
const OTHER = 'other-version'
/** The time from a change of endpoints to the owner's write, if the agent does not write; in ms. */
const OWNER_LAG_MS = 300

/**
 * Plays a scenario. Rejects with every violated invariant (docs/lab/faults.md), in words.
 *
 * @param keep gets the agents' logs of a failed run, one JSON document for each line
 */
export async function play(scenario: Scenario, keep?: (lines: string) => void): Promise<void> {
  const windows: { readonly from: number; to: number }[] = []
  const excusedMs = (from: number, to: number) =>
    windows.reduce((sum, one) => sum + Math.max(0, Math.min(to, one.to) - Math.max(from, one.from)), 0) +
    stalledMs(from, to)
  const barrier = scenario.mode.endsWith('barrier')
  const hidesGateway = has(scenario, 'gateway: second behind one address')
  const clocks: CountingClock[] = []
  const skew = { ms: 0 }
  const mends: Promise<unknown>[] = []
  const ways = new Map<TestAgent, OwnWay>()
  const logs: TestAgent['lines'][] = []
  const rig = await startRig({
    gateways: 2,
    workers: 2,
    barrier,
    fetches: barrier,
    standalone: scenario.mode.startsWith('standalone'),
    discovery: scenario.mode.startsWith('discovery'),
    agent: false,
    excusedMs,
    loop: { lingerMs: scenario.stranger === 'none' ? LINGER_MS : STRANGER_LINGER_MS },
    clock() {
      const clock = countingClock()
      clocks.push(clock)
      return clock
    },
    kubernetes: { store: { now: () => Date.now() + skew.ms } },
    config: {
      ...SETTINGS,
      // With a hidden gateway the ttl is short, because the agents may never remove the entries there.
      ...(barrier && { APISIX_BARRIER_TTL: hidesGateway ? '3s' : '15s' }),
      ...(has(scenario, 'Admin API: slow listings') && { APISIX_ADMIN_TIMEOUT: `${2 * SLOW_LISTING_MS}ms` }),
      ...(scenario.agents === 'two, one leads' && { LEADER_LEASE: 'default/drain' })
    }
  })
  const address = rig.address()
  const backup = has(scenario, 'owner: lists a backup')
    ? await startBackend('the backup', address, PORTS.proxy)
    : undefined
  const owner = ownerOf(rig, scenario, backup && { host: address, port: PORTS.proxy })
  const endSyncs = startSyncs(rig, owner)
  const hidden = hidesGateway ? await hideGateway(rig) : undefined
  try {
    await perform(rig, scenario, owner, {
      windows,
      mends,
      ways,
      clocks,
      skew,
      logs,
      settings: hidden?.settings ?? {},
      backup: backup && `${address}:${PORTS.proxy}`
    })
  } catch (error) {
    const lines = logs.flatMap((one, agent) => one.map(line => JSON.stringify({ agent, ...line })))
    keep?.([describeScenario(scenario), String(error), ...lines].join('\n'))
    throw error
  } finally {
    // All faults must be mended before the rig is closed.
    await Promise.allSettled(mends)
    endSyncs()
    await hidden?.close()
    await backup?.close()
    await rig.close()
    for (const way of ways.values()) await way.close()
  }
}

async function perform(
  rig: Rig,
  scenario: Scenario,
  owner: Owner,
  {
    windows,
    mends,
    ways,
    clocks,
    skew,
    logs,
    settings,
    backup
  }: {
    windows: { from: number; to: number }[]
    mends: Promise<unknown>[]
    /** The agents' own ways to the API server. */
    ways: Map<TestAgent, OwnWay>
    clocks: CountingClock[]
    skew: { ms: number }
    logs: TestAgent['lines'][]
    /** Settings of every agent, in addition to those of the rig. */
    settings: Readonly<Record<string, string>>
    /** The node of a lower priority, if the owner lists one. */
    backup: string | undefined
  }
): Promise<void> {
  const agents: TestAgent[] = []
  const proxies = rig.gateways.map(({ urls }) => urls.proxy)
  const backends = new Map<string, Backend>()
  const violations: string[] = []
  const evicted = new Set<string>()
  const isEnding = (pod: TestPod) =>
    evicted.has(pod.uid) || rig.object(pod)?.metadata.deletionTimestamp !== undefined
  const clockOf = new Map<TestAgent, CountingClock>()
  /** Agents whose own way to the API server was broken. */
  const unseeing = new Set<TestAgent>()
  const resumes = new Map<TestAgent, (() => void)[]>()

  const stage: Stage = {
    rig,
    agents,
    proxies,
    leaving: new Set(),
    async startAgent() {
      const way = needsWays(scenario) ? await ownWay(rig) : undefined
      const starting = rig.startAgent({ ...settings, ...way?.settings })
      const clock = clocks.at(-1)
      const agent = await starting
      if (way) ways.set(agent, way)
      if (clock) clockOf.set(agent, clock)
      agents.push(agent)
      logs.push(agent.lines)
    },
    async endAgent(agent) {
      for (const resume of resumes.get(agent) ?? []) resume()
      await agent.close()
    },
    pauseAgent(agent) {
      const resume = clockOf.get(agent)?.pause() ?? (() => {})
      resumes.set(agent, [...(resumes.get(agent) ?? []), resume])
      return resume
    },
    unready(gateway) {
      const at = proxies.indexOf(gateway.urls.proxy)
      if (at >= 0) proxies.splice(at, 1)
      if (gateway.running) rig.gatewayIs(gateway, 'not-ready')
    },
    async ready(gateway) {
      const { barrier: api } = gateway.urls
      const isReady = async () => api === undefined || (await get(`${api}/v1/barrier/ready`)).status === 200
      const mayServe = () => gateway.running && !stage.leaving.has(gateway)
      while (mayServe() && !(await isReady().catch(() => false))) await wait(PROBE_MS)
      await isBack(rig.kubernetes)
      if (!mayServe()) return
      if (!proxies.includes(gateway.urls.proxy)) proxies.push(gateway.urls.proxy)
      rig.gatewayIs(gateway, 'ready')
    },
    wayOf(agent) {
      unseeing.add(agent)
      return ways.get(agent)
    },
    blame: what => void violations.push(what),
    moveServerClock: ms => void (skew.ms += ms),
    // In modes in which the agent writes the holder, the owner writes an old list. In other modes the owner removes the ending pods.
    ownerWrites: () =>
      isStuck || void owner.write(members().filter(pod => isWritten(scenario.mode) || !isEnding(pod)))
  }

  /** The ends of the faults that do not outlast the run's other events. */
  const shortMends: Promise<unknown>[] = []
  const at = async (moment: Moment) => {
    for (const { fault, forMs, which } of scenario.breaks.filter(one => one.moment === moment)) {
      const window = { from: performance.now(), to: Infinity }
      windows.push(window)
      const mend = await FAULTS[fault](stage, which)
      const mended = wait(forMs)
        .then(mend)
        .finally(() => (window.to = performance.now()))
      // `mended` may fail before it is awaited, and that must not count as an unhandled rejection.
      mended.catch(() => {})
      mends.push(mended)
      if (!isOfOneWay(fault)) shortMends.push(mended)
    }
  }
  const arrive = async (name: string, ip?: string): Promise<TestPod> => {
    const kind = scenario.stranger === 'none' ? scenario.ownPlace : 'ReplicaSet'
    const pod = rig.pod(name, {
      graceSeconds: has(scenario, 'pods: short grace') ? SHORT_GRACE_SECONDS : GRACE_SECONDS,
      ...(ip !== undefined && { ip }),
      ...(kind !== 'none' && name !== OTHER && { owner: { kind, name: 'web-1a' }, host: `host-of-${name}` })
    })
    backends.set(pod.uid, await rig.serve(pod))
    return pod
  }
  const showEndpoints = () => rig.service('web', rig.pods())
  const members = () => rig.pods().filter(({ name }) => name !== OTHER)

  /** The owner lists no pod that is not listed already. */
  const isStuck = scenario.stranger === 'stranger: at a successor'
  const hidesGateway = has(scenario, 'gateway: second behind one address')
  const ending: TestPod[] = []
  const staying: TestPod[] = []
  for (let i = 0; i < scenario.ending; i++) ending.push(await arrive(`old-${i}`))
  for (let i = 0; i < scenario.staying; i++) staying.push(await arrive(`stays-${i}`))
  await arrive(OTHER)
  showEndpoints()
  await owner.write([...ending, ...staying])
  const alone = scenario.ownPlace === 'none' ? undefined : ending[0]
  if (alone) await owner.listAlone(alone)
  await stage.startAgent()
  if (scenario.agents !== 'one') await stage.startAgent()
  await until('the agents are ready', () => agents.every(one => one.missing().length === 0), START_MS)
  await until(
    'they know every pod',
    () => rig.pods().every(({ ip }) => agents.every(one => one.knows(ip))),
    START_MS
  )
  const listed = ending.length + staying.length + (backup ? 1 : 0)
  if (isWritten(scenario.mode))
    await until('they list all', () => agents.every(one => one.nodes('upstreams/web') === listed), START_MS)
  await until(
    'every worker routes',
    () =>
      rig.gateways.every(({ workers }) =>
        workers.every(({ config }) =>
          (alone ? ['web', 'own'] : ['web']).every(id => config.get('upstreams', id) !== undefined)
        )
      ),
    START_MS
  )

  /** A pod of another namespace gets an address of ours, and a place of its own. One of two agents may still see nothing of that. */
  const strangerComes = async (): Promise<readonly string[]> => {
    await Promise.all(shortMends)
    rig.kubernetes.faults.endWatches()
    const seeing = () => agents.filter(agent => !unseeing.has(agent))
    const workers = () => rig.gateways.filter(({ running }) => running).flatMap(({ workers }) => workers)
    const hasPlace = ({ config }: ReturnType<typeof workers>[number]) =>
      config.get('routes', 'own') !== undefined &&
      JSON.stringify(config.get('upstreams', 'own') ?? '').includes(ip)
    let ip = ending[0]?.ip ?? ''
    const lost = scenario.stranger === 'stranger: at a successor' ? staying.pop() : undefined
    if (lost) {
      ip = lost.ip
      await backends.get(lost.uid)?.close()
      rig.gone(lost)
      showEndpoints()
      await until('it is seen', () => seeing().every(agent => !agent.knows(ip)), START_MS)
      await wait(REUSE_MS)
    } else {
      const isListed = () =>
        workers().some(({ config }) => JSON.stringify(config.get('upstreams', 'web') ?? '').includes(ip))
      await until('the address is out', () => !isListed(), OUT_MS).catch(() => {})
      await wait(REUSE_MS)
      // With an old list, APISIX itself sends requests there.
      if (isListed()) return []
    }
    const stranger = rig.pod('stranger', {
      namespace: 'bank',
      ip,
      owner: { kind: 'ReplicaSet', name: 'bank-1a' }
    })
    // A pod has its address before it serves.
    const isSeen = () => seeing().every(agent => agent.pod(ip)?.uid === stranger.uid)
    await until('the stranger is seen', isSeen, START_MS)
    await wait(REUSE_MS)
    backends.set(stranger.uid, await rig.serve(stranger))
    await owner.listAlone(stranger)
    // A gateway that the owner cannot reach has no place for the stranger, and sends it nothing.
    await until('every worker has its place', () => workers().every(hasPlace), OUT_MS).catch(() => {})
    const own = startLoad(proxies, PER_SECOND, '/own/')
    await wait(STRANGER_MS)
    const [{ by }, ours] = [await own.stop(), load.result.by]
    const wrong = Object.keys(by).filter(name => name !== stranger.name)
    await owner.listAlone(undefined)
    await backends.get(stranger.uid)?.close()
    rig.gone(stranger)
    return [
      ...wrong.map(name => `${by[name]} requests for the stranger reached ${name}`),
      ...(ours[stranger.name] ? [`${ours[stranger.name]} requests for web reached the stranger`] : [])
    ]
  }

  const load = startLoad(proxies, PER_SECOND)
  const loadAlone = alone && startLoad(proxies, PER_SECOND, '/own/')
  const release = () => {
    for (const backend of backends.values()) backend.release()
  }
  /** Releases requests until `work` is done, because a request that a gateway delayed or retried may arrive later. */
  const releasing = async <T>(work: Promise<T>): Promise<T> => {
    const over = work.then(
      () => true,
      () => true
    )
    do release()
    while (!(await Promise.race([over, wait(RELEASE_MS, false)])))
    return work
  }
  const held = scenario.inFlight
    ? Array.from({ length: 2 * listed }, (_, i) =>
        get(`${proxies[i % proxies.length]}/?hold`).catch(() => {})
      )
    : []

  await at('before the deletion')
  const isKubelets = has(scenario, 'kubelet: ends pods by itself')
  if (!isKubelets) for (const pod of ending) rig.end(pod)
  showEndpoints()
  const whoStays = () => members().filter(pod => !isEnding(pod))
  // If the owner would have no pod left to list, its write changes nothing, and it waits for the replacement.
  const ownersTurn =
    isWritten(scenario.mode) || isStuck
      ? Promise.resolve()
      : wait(OWNER_LAG_MS).then(() => owner.write(whoStays()))
  await at('between deletion and hook')
  const isAskable = isCounted(scenario)
  const inFlightTo = async (pod: TestPod) => {
    const backend = isAskable ? backends.get(pod.uid) : undefined
    // Requests of a killed worker reach the pod a moment later. With other faults, the requests may be released by then.
    if (has(scenario, 'gateway: one worker killed')) await backend?.caughtUp()
    return backend?.open ?? 0
  }
  const hooks = Promise.all(
    ending.map((pod, i) =>
      askHook(stage, pod, i, {
        inFlight: () => inFlightTo(pod),
        mayProve: !hidesGateway,
        isWitness: scenario.mode.endsWith('barrier'),
        isUnhurt: isUnhurt(scenario)
      })
    )
  )
  hooks.catch(() => {})
  if (isKubelets) {
    await wait(KUBELET_LATE_MS)
    for (const pod of ending) {
      evicted.add(pod.uid)
      rig.evicted(pod)
    }
    await wait(KUBELET_LATE_MS)
    for (const pod of ending) rig.end(pod)
    showEndpoints()
  }
  await wait(30)
  await at('while the hook is held')
  const late = async (name: string, ip?: string) => {
    const pod = await arrive(name, ip)
    showEndpoints()
    if (!isStuck) await (isWritten(scenario.mode) ? owner.add(pod) : owner.write(whoStays()))
    return pod
  }
  if (scenario.ownerAdds) await wait(scenario.addsAfterMs)
  if (scenario.ownerAdds) staying.push(await late('added'))
  const replacesAtOnce = !scenario.sameAddress || scenario.staying === 0
  if (replacesAtOnce) {
    // Until the replacement arrives, only the ending pods exist.
    if (scenario.staying === 0) await wait(ALONE_MS)
    if (isStuck) staying.push(await late('follows'))
    staying.push(await late('new'))
    await at('when the replacement arrives')
  }
  await ownersTurn
  await wait(100)
  violations.push(...(await releasing(hooks)).flat())
  await at('after the ack')
  await wait(200)
  release()

  for (const pod of ending) {
    // Only `barrier` counts requests on their way. `observed` relies on time, but this process may have been stopped meanwhile.
    if (!scenario.mode.endsWith('barrier')) await backends.get(pod.uid)?.caughtUp()
    void backends.get(pod.uid)?.terminate()
    await wait(20)
    await backends.get(pod.uid)?.close()
    rig.gone(pod)
  }
  showEndpoints()
  if (loadAlone) {
    await wait(ALONE_MS)
    const { by } = await releasing(loadAlone.stop())
    for (const name of Object.keys(by))
      if (name !== alone?.name)
        violations.push(
          `${by[name]} requests to ${alone?.name} alone were answered by ${name}, of another role`
        )
    await owner.listAlone(undefined)
  }
  if (scenario.sameAddress) {
    if (isWritten(scenario.mode) && !scenario.addressAtOnce) {
      await Promise.all(mends)
      const listed = () => rig.nodes(HOLDER).includes(ending[0]?.node ?? '')
      // If the address stays listed, `checkOutcome` reports it.
      await until('the address is out', () => !listed(), OUT_MS).catch(() => {})
      // This waits for requests that the other agent sent before the address was removed.
      await wait(REUSE_MS)
    }
    staying.push(await late('same-address', ending[0]?.ip))
    if (!replacesAtOnce) await at('when the replacement arrives')
  }
  if (scenario.stranger !== 'none') violations.push(...(await strangerComes()))
  await Promise.all(mends)
  // The API server ends watches after some minutes. Then the agent reads the events that a silent watch has missed.
  rig.kubernetes.faults.endWatches()
  // The owner writes again, because some gateways were unreachable before, or a pod went while no agent saw it.
  if (!isWritten(scenario.mode) || leavesGhosts(scenario)) await owner.write(staying)
  violations.push(...(await checkOutcome(stage, scenario, staying, backup)))
  await releasing(Promise.all(held))
  const { failures: all, by } = await load.stop()
  // A gateway that rolls is ended like a process, with its connections. Its answers count.
  const failures = has(scenario, 'gateway: all roll') ? all.filter(one => /^\d/.test(one)) : all
  if (isUnfelt(scenario) && by['the backup'])
    violations.push(`${by['the backup']} requests were answered by the backup, beside pods that serve`)
  // A stuck owner lists only pods that are gone, and here their entries end soon.
  if (isUnfelt(scenario) && !isStuck && failures.length > 0)
    violations.push(
      `nothing was broken, and requests failed: ${[...new Set(failures)].join(', ')} (${whatAgentsSaid(logs)})`
    )
  violations.push(...(await checkLeaks(stage, clocks)), ...rig.unlisted(), ...rig.violations())
  if (violations.length > 0) throw new Error(violations.join('\n'))
}
