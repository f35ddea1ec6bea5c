import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { answers } from './agent.ts'
import { workload } from './objects/workload.ts'
import { hooksOf, more, restart } from './rollout.ts'
import { answered, endedInTime, kube, lostNothing, observe, oneOf, PROVED, serving } from './scenario.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

const WAIT_MS = 60_000
const FALLBACK_MS = 5000

const shell = (pod: string, command: string) =>
  kube('exec', pod, '--container=app', '--', 'sh', '-c', command)
const recordOf = (web: Workload, name: string) => {
  const found = web.pods().find(pod => pod.name === name)
  if (!found) throw new Error(`${name} was never seen`)
  return found
}
const isAskedAgain = (web: Workload, name: string) =>
  eventually(`${name} gets requests again`, async () => (await web.ask()) === name, WAIT_MS)

/** What only a real kubelet does to pods, and what has no replacement. */
describe('pods that a kubelet restarts, or that nobody replaces in time', () => {
  it('a liveness probe fails: the hook returns when Kubernetes was asked twice, and the pod goes on under its uid', async () => {
    const livenessProbe = {
      exec: { command: ['test', '!', '-e', '/tmp/sick'] },
      periodSeconds: 1,
      failureThreshold: 1
    }
    const observed = await observe(
      'liveness',
      { exitsAtTerm: false, container: { livenessProbe } },
      async web => {
        const name = oneOf(web)
        await shell(name, ': > /tmp/sick')
        const pod = recordOf(web, name)
        await eventually('its container is restarted', () => pod.restarts === 1, WAIT_MS)
        await eventually('it is ready again', () => serving(web).includes(pod), WAIT_MS)
        await isAskedAgain(web, name)
      }
    )
    lostNothing(observed)
    endedInTime(observed, 0)
    answered(observed, 'not-terminating/none')
    expect(observed.hooks).to.have.length(1)
    expect(observed.hooks[0]?.ms).to.be.below(FALLBACK_MS)
  })

  it('readiness flaps: no drain, no hook, and the pod gets requests again each time', async () => {
    // Ready while the file is empty or not there, and the app answers.
    const command = ['sh', '-c', 'test ! -s /tmp/unready && curl -fsS "http://$POD_IP:8080/"']
    const readinessProbe = { exec: { command }, periodSeconds: 1, failureThreshold: 1 }
    const observed = await observe('flapping', { container: { readinessProbe } }, async web => {
      const name = oneOf(web)
      const pod = recordOf(web, name)
      for (let times = 0; times < 2; times++) {
        await shell(name, 'echo no > /tmp/unready')
        await eventually('it is not ready', () => !pod.isReady, WAIT_MS)
        await shell(name, ': > /tmp/unready')
        await eventually('it is ready again', () => pod.isReady, WAIT_MS)
        await isAskedAgain(web, name)
      }
    })
    lostNothing(observed)
    endedInTime(observed, 0)
    answered(observed)
    expect(observed.hooks).to.deep.equal([])
  })

  it('Recreate: nothing fails, and no hook returns, before the owner has nobody left to send requests to', async () => {
    let emptiedAt = Infinity
    const observed = await observe('recreate', { replicas: 2, strategy: { type: 'Recreate' } }, async web => {
      await restart(world(), web)
      emptiedAt = web.emptiedAt()
    })
    endedInTime(observed, 2)
    expect(observed.hooks).to.have.length(2)
    // Kubernetes makes no new pod before the old ones are gone: then nobody can answer.
    expect(observed.load.failed).to.be.greaterThan(0)
    for (const at of observed.failedAt) expect(at).to.be.at.least(emptiedAt)
    expect(Math.max(...observed.hooks.map(({ at }) => at))).to.be.at.least(emptiedAt)
  })

  it('pods without a Service end at once: nobody routes to them', async () => {
    const options = { name: 'unrouted', arm: 'apisix-drain', replicas: 2 } as const
    const pods = () => world().records.of('unrouted')
    await world().kube.apply(workload(options))
    await eventually('both are ready', () => pods().filter(({ isReady }) => isReady).length === 2, WAIT_MS)
    const before = await answers(world())
    await kube('delete', 'deployment/unrouted')
    await eventually('both are gone', () => pods().every(({ goneAt }) => goneAt), WAIT_MS)
    endedInTime({ ended: pods() }, 2)
    // The gateways may have proved it before the holders were listed again.
    answered({ answers: more(before, await answers(world())) }, ...PROVED)
    const hooks = hooksOf(world(), 'unrouted')
    expect(hooks).to.have.length(2)
    for (const { ms } of hooks) expect(ms).to.be.below(FALLBACK_MS)
  })
})
