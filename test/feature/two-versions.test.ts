import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { until } from '../build/apisix.ts'
import type { Backend } from '../build/backend.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { startLoad } from '../build/load.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'
import { watchListings } from '../build/listings.ts'

// One Service selects two versions, and each version has its own upstream, as with the subsets of an ingress controller. The
// agent must not add a pod to an upstream because Kubernetes lists it for the Service (docs/decisions/0024). With real
// controllers, 125 of 1,332 requests once went to the wrong version of the app.

const VERSIONS = ['v1', 'v2'] as const
type Version = (typeof VERSIONS)[number]

const REPLICAS = 2
const RESTARTS = 3
const PER_SECOND = 20
const CONTROLLER = { 'managed-by': 'apisix-ingress-controller' }

/** The time from a change of the endpoints to the controller's write, in ms. Real controllers took 70 to 340 ms. */
const LAGS_MS = { quick: 150, late: 5000 }
type Manner = keyof typeof LAGS_MS | 'hung'

/** Starts a controller that writes whole arrays. A controller that hangs also writes what it knew when it got the change. */
function startController(rig: Rig, manner: Manner) {
  const serving = new Map<Version, readonly TestPod[]>()
  const pending = new Set<Promise<void>>()
  let hangs: PromiseWithResolvers<void> | undefined
  const write = (version: Version, pods: readonly TestPod[]) =>
    rig.put('upstreams', version, { type: 'roundrobin', labels: CONTROLLER, nodes: arrayOf(pods) })
  return {
    write,
    /** Blocks the controller's calls until `revive`. Then the controller first sends the blocked calls. */
    hang() {
      if (manner === 'hung') hangs = Promise.withResolvers()
    },
    revive() {
      hangs?.resolve()
      hangs = undefined
    },
    show(version: Version, pods: readonly TestPod[]) {
      serving.set(version, pods)
      const seen = hangs ? pods : undefined
      const sync = async () => {
        if (hangs) await hangs.promise
        else await wait(LAGS_MS[manner === 'late' ? 'late' : 'quick'])
        if (seen) write(version, seen)
        write(version, serving.get(version) ?? [])
      }
      const one = sync().finally(() => pending.delete(one))
      pending.add(one)
    },
    async idle() {
      while (pending.size > 0) await Promise.all(pending)
    }
  }
}

async function restartThreeTimes(rig: Rig, manner: Manner) {
  const backends = new Map<TestPod, Backend>()
  const ended = new Set<TestPod>()
  const made: Record<Version, TestPod[]> = { v1: [], v2: [] }
  const controller = startController(rig, manner)
  const listings = watchListings(rig)
  const arrive = async (version: Version) => {
    const pod = rig.pod(`${version}-${made[version].length}`)
    made[version].push(pod)
    backends.set(pod, await rig.serve(pod))
    return pod
  }
  const serving = (version: Version) => made[version].filter(pod => !ended.has(pod))
  const showEndpoints = () => rig.service('web', rig.pods())

  for (const version of VERSIONS) {
    for (let i = 0; i < REPLICAS; i++) await arrive(version)
    controller.write(version, serving(version))
    rig.put('routes', version, { uri: `/${version}/*`, upstream_id: version })
  }
  showEndpoints()
  await rig.settled()
  await until('the agent knows both', () =>
    VERSIONS.every(version => rig.agent.nodes(`upstreams/${version}`) === REPLICAS)
  )
  const proxy = rig.gateways[0]?.urls.proxy ?? ''
  const loads = VERSIONS.map(version => ({ version, load: startLoad([`${proxy}/${version}`], PER_SECOND) }))
  const endLoads = () =>
    Promise.all(loads.map(async ({ version, load }) => ({ version, ...(await load.stop()) })))

  const everyPodAnswered = () =>
    until('each pod has answered a request', () =>
      loads.every(({ version, load }) =>
        serving(version).every(({ name }) => (load.result.by[name] ?? 0) > 0)
      )
    )

  const replace = async (version: Version, old: TestPod) => {
    await arrive(version)
    ended.add(old)
    rig.end(old)
    showEndpoints()
    controller.show(version, serving(version))
    await rig.hook(old)
    const backend = backends.get(old)
    await backend?.caughtUp()
    void backend?.terminate()
    await backend?.close()
    rig.gone(old)
    showEndpoints()
  }
  const restart = async () => {
    controller.hang()
    const olds = VERSIONS.flatMap(version => serving(version).map(old => ({ version, old })))
    const hooks = olds.map(({ version, old }) => replace(version, old))
    const isDone = Promise.all(hooks)
    // The lists are the controller's own, and these pods have no owner that could name successors: only the controller ends the waits.
    // Without the plugin none is held, since all nodes of a list end.
    if (manner === 'hung' && rig.gateways[0]!.barrier)
      await until('all hooks are held', () => rig.agent.loop.held().length === olds.length)
    controller.revive()
    await isDone
    await controller.idle()
    await until('what is gone is out', () =>
      VERSIONS.every(
        version =>
          rig.nodes(`upstreams/${version}`).toSorted().join() ===
          serving(version)
            .map(({ node }) => node)
            .toSorted()
            .join()
      )
    )
  }
  try {
    for (let i = 0; i < RESTARTS; i++) {
      await everyPodAnswered()
      await restart()
    }
    await everyPodAnswered()
  } finally {
    controller.revive()
    await endLoads()
  }
  return { results: await endLoads(), listings }
}

describe('feature: one Service with two versions, both Deployments restarted at once, three times', () => {
  const test = sideBySide()

  for (const manner of ['quick', 'late', 'hung'] as const)
    for (const barrier of [false, true])
      test(`no request reaches the other version, and the agent writes no list of a controller: a ${manner} controller, ${barrier ? 'with' : 'without'} the plugin`, async start => {
        const rig = await start({ barrier })
        const { results, listings } = await restartThreeTimes(rig, manner)
        for (const { version, by, sent } of results) {
          expect(
            Object.keys(by).filter(name => !name.startsWith(version)),
            `who answered for ${version}`
          ).to.deep.equal([])
          // Each generation of pods has answered requests.
          expect(sent).to.be.above(RESTARTS * REPLICAS)
          expect(Object.keys(by)).to.have.length((RESTARTS + 1) * REPLICAS)
        }
        expect(listings.unfounded()).to.deep.equal([])
        expect(listings.writes()).to.equal(0)
      })
})
