import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { answersTo } from './agent.ts'
import { workload } from './objects/workload.ts'
import { hooksOf, restart } from './rollout.ts'
import { answered, endedInTime, kube, lostNothing, observing, oneOf, PROVED, serving } from './scenario.ts'
import { world } from './setup.ts'
import { together } from './together.ts'
import type { Workload } from './world.ts'

const FALLBACK_MS = 5000
/** The timeout is long, because a busy machine is slow to start a probe's program. */
const PROBE = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 }

const shell = (pod: string, command: string) =>
  kube('exec', pod, '--container=app', '--', 'sh', '-c', command)
const recordOf = (web: Workload, name: string) => {
  const found = web.pods().find(pod => pod.name === name)
  if (!found) throw new Error(`${name} was never seen`)
  return found
}
const isAskedAgain = (web: Workload, name: string) =>
  eventually(`${name} gets requests again`, async () => (await web.ask()) === name)

/** Ends that only a real kubelet causes, and pods without a replacement. */
describe('pods that a kubelet restarts, or that are not replaced in time', () => {
  const side = together(4)

  const restarted = observing(side, {
    name: 'liveness',
    options: {
      exitsAtTerm: false,
      container: { livenessProbe: { exec: { command: ['test', '!', '-e', '/tmp/sick'] }, ...PROBE } }
    },
    ends: 0,
    async act(web) {
      const name = oneOf(web)
      await shell(name, ': > /tmp/sick')
      const pod = recordOf(web, name)
      await eventually('its container is restarted', () => pod.restarts === 1)
      await eventually('it is ready again', () => serving(web).includes(pod))
      await isAskedAgain(web, name)
    }
  })
  it('a liveness probe fails: nothing fails, and the pod goes on under its uid', async () => {
    const observed = await restarted()
    lostNothing(observed)
    endedInTime(observed, 0)
    expect(observed.answers).to.deep.equal({ 'drained/barrier': 1 })
    expect(observed.hooks).to.have.length(1)
    expect(observed.hooks[0]?.ms).to.be.below(FALLBACK_MS + 1000)
  })

  // The probe succeeds while the file is empty or missing, and the app answers.
  const isWell = ['sh', '-c', 'test ! -s /tmp/unready && curl -fsS "http://$POD_IP:8080/"']
  const flapping = observing(side, {
    name: 'flapping',
    options: { container: { readinessProbe: { exec: { command: isWell }, ...PROBE } } },
    ends: 0,
    async act(web) {
      const name = oneOf(web)
      const pod = recordOf(web, name)
      for (let times = 0; times < 2; times++) {
        await shell(name, 'echo no > /tmp/unready')
        await eventually('it is not ready', () => !pod.isReady)
        await shell(name, ': > /tmp/unready')
        await eventually('it is ready again', () => pod.isReady)
        await isAskedAgain(web, name)
      }
    }
  })
  it('readiness flaps: no drain, no hook, and the pod gets requests again each time', async () => {
    const observed = await flapping()
    lostNothing(observed)
    endedInTime(observed, 0)
    answered(observed)
    expect(observed.hooks).to.deep.equal([])
  })

  let emptiedAt = Infinity
  const recreated = observing(side, {
    name: 'recreate',
    options: { replicas: 2, strategy: { type: 'Recreate' } },
    ends: 2,
    async act(web) {
      await restart(world(), web)
      emptiedAt = web.emptiedAt()
    }
  })
  it('Recreate: nothing fails and no hook returns until the owner has no pod left to send requests to', async () => {
    const observed = await recreated()
    endedInTime(observed, 2)
    expect(observed.hooks).to.have.length(2)
    // Kubernetes makes new pods only when the old pods are gone, so for a while no pod can answer.
    expect(observed.load.failed).to.be.greaterThan(0)
    for (const at of observed.failedAt) expect(at).to.be.at.least(emptiedAt)
    expect(Math.max(...observed.hooks.map(({ at }) => at))).to.be.at.least(emptiedAt)
  })

  const unrouted = side.plan(async () => {
    const options = { name: 'unrouted', arm: 'apisix-drain', replicas: 2 } as const
    const pods = () => world().records.of('unrouted')
    await world().kube.apply(workload(options))
    await eventually('both are ready', () => pods().filter(({ isReady }) => isReady).length === 2)
    await kube('delete', 'deployment/unrouted')
    await eventually('both are gone', () => pods().every(({ goneAt }) => goneAt))
    return {
      ended: pods(),
      hooks: hooksOf(world(), 'unrouted'),
      answers: await answersTo(world(), 'unrouted')
    }
  })
  it('pods without a Service end at once: no gateway routes to them', async () => {
    const observed = await unrouted()
    endedInTime(observed, 2)
    answered(observed, PROVED)
    expect(observed.hooks).to.have.length(2)
    for (const { ms } of observed.hooks) expect(ms).to.be.below(FALLBACK_MS)
  })
})
