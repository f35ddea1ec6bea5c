import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { answersTo, scaleAgent } from './agent.ts'
import { APP } from './images/names.ts'
import { field } from './objects/fields.ts'
import { workload, type WorkloadOptions } from './objects/workload.ts'
import { hooksOf } from './rollout.ts'
import {
  answered,
  endedInTime,
  kube,
  lostNothing,
  observing,
  oneOf,
  PROVED,
  restart,
  serving
} from './scenario.ts'
import { world } from './setup.ts'
import { together } from './together.ts'
import type { Workload } from './world.ts'

/** The timeout is long, because a busy machine is slow to start a probe's program. */
const PROBE = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 }

const SICK = { exec: { command: ['test', '!', '-e', '/tmp/sick'] }, ...PROBE }
/** How often each restart is played: `ROUNDS=10` is for docs/lab/runs.md. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 1)

interface Restarts extends Partial<WorkloadOptions> {
  readonly title: string
  /** The container whose probe fails, and the file in `/tmp` that makes it fail; default: `sick` in the app. */
  readonly sick?: readonly [container: string, file: string]
  /** How often it fails; default once. */
  readonly restarts?: number
  /** The app does not answer, so its requests fail. Only the time of the restart counts. */
  readonly isHung?: boolean
}

/** A hook that is as long as the sleep, unless it is answered with `drained`. */
const UNROUTED = `case $(curl -fsS -m 4 -X POST "http://apisix-drain.apisix:8080/v1/prestop?\
namespace=$POD_NAMESPACE&pod=$POD_NAME&container=beside&sleep=5s") in *'"result":"drained"'*) ;; *) sleep 5;; esac`
const SIDECAR = {
  name: 'beside',
  image: APP,
  imagePullPolicy: 'Never',
  ports: [{ containerPort: 8081 }],
  env: [
    field('POD_NAME', 'metadata.name'),
    field('POD_NAMESPACE', 'metadata.namespace'),
    { name: 'PORT', value: '8081' },
    { name: 'AT_TERM', value: 'exit' }
  ],
  livenessProbe: SICK,
  lifecycle: { preStop: { exec: { command: ['sh', '-c', UNROUTED] } } }
}
const UNPROBED = { livenessProbe: SICK, readinessProbe: null }
const HUNG = { livenessProbe: { httpGet: { path: '/', port: 8080 }, ...PROBE, timeoutSeconds: 1 } }

/** The longest one first, so that the others run beside it. */
const CASES: readonly Restarts[] = [
  { title: 'a sidecar, ten times', beside: [SIDECAR], sick: ['beside', 'sick'], restarts: 10 },
  { title: 'at once, with a readiness probe' },
  { title: 'at once, without a readiness probe', container: UNPROBED },
  { title: 'hung, behind a plain sleep', arm: 'sleep', sick: ['app', 'hung'], isHung: true, container: HUNG },
  { title: 'three seconds of start, with a readiness probe', startupMs: 3000 },
  { title: 'three seconds of start, without a readiness probe', startupMs: 3000, container: UNPROBED },
  { title: 'the app ignores SIGTERM for ten seconds', atTerm: '10s' },
  { title: 'two restarts in a row', restarts: 2 },
  { title: 'a hung app, no later than by its sleep', sick: ['app', 'hung'], isHung: true, container: HUNG }
]

const shell = (pod: string, command: string, container = 'app') =>
  kube('exec', pod, `--container=${container}`, '--', 'sh', '-c', command)
const recordOf = (web: Workload, name: string) => {
  const found = web.pods().find(pod => pod.name === name)
  if (!found) throw new Error(`${name} was never seen`)
  return found
}
const isAskedAgain = (web: Workload, name: string) =>
  eventually(`${name} gets requests again`, async () => (await web.ask()) === name)

/** One pod on each host that it may use. A host that is cordoned does not count. */
const SPREAD = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' }
const ON_EVERY_HOST = {
  tolerations: [{ key: 'trouble', operator: 'Exists' }],
  topologySpreadConstraints: [
    { ...SPREAD, nodeTaintsPolicy: 'Honor', labelSelector: { matchLabels: { app: 'evicted' } } }
  ]
}
/** There is always too little memory. Only a kubelet with this isolation reads about disks, and without that its eviction ends early. */
const SHORT_OF_MEMORY = {
  localStorageCapacityIsolation: true,
  evictionSoft: { 'memory.available': '99%' },
  evictionSoftGracePeriod: { 'memory.available': '1s' },
  evictionMaxPodGracePeriod: 30
}

/** Ends that only a real kubelet causes, and pods without a replacement. */
describe('pods that a kubelet restarts, or that are not replaced in time', () => {
  const side = together(4)
  before(() => scaleAgent(world(), 2))

  // First, because it takes long.
  const evicted = observing(side, {
    name: 'evicted',
    options: { pod: ON_EVERY_HOST },
    ends: 0,
    async act(web) {
      const host = world().cluster.kubelets.at(-1)
      const there = ['--selector=app=evicted', `--field-selector=spec.nodeName=${host?.name}`]
      // The pod that replaces it must start elsewhere.
      await kube('cordon', host?.name ?? '')
      await host?.restart(SHORT_OF_MEMORY)
      await kube('wait', 'pod', ...there, '--for=jsonpath={.status.reason}=Evicted', '--timeout=90s')
      await host?.restart()
      await eventually('it is replaced', () => serving(web).length === 3)
    }
  })
  it('a kubelet evicts a pod, with a grace: nothing fails, and its hook is answered', async () => {
    const observed = await evicted()
    lostNothing(observed)
    expect(observed.hooks).to.have.length(1)
    expect(observed.answers).to.deep.equal({ [PROVED]: 1 })
  })

  // The time of a restart is compared with that behind a sleep in many rounds only.
  for (const [index, one] of CASES.filter(({ isHung }) => ROUNDS > 1 || !isHung).entries()) {
    const { title, sick = ['app', 'sick'], restarts = 1, isHung, ...options } = one
    const [container, file] = sick
    const rounds = Array.from({ length: ROUNDS }, (_, round) => {
      const backAt: number[] = []
      const denied = new Set<number | undefined>()
      const seen = observing(side, {
        name: `restart-${index}-${round}`,
        options: { container: { livenessProbe: SICK }, ...options },
        ends: 0,
        async act(web) {
          const pod = recordOf(web, oneOf(web))
          while (pod.restarts < restarts) {
            const next = pod.restarts + 1
            // Right after a restart, an exec fails until the container runs.
            const makeSick = () => shell(pod.name, `: > /tmp/${file}`, container)
            await eventually('it is sick', async () => (await makeSick()) === '')
            await eventually('its container is restarted', async () => {
              const { entries } = await world().gateways.barrier.state()
              for (const { uid, port } of entries) if (uid === pod.uid) denied.add(port)
              return pod.restarts === next
            })
            backAt.push(Date.now())
          }
          await eventually('it is ready again', () => serving(web).includes(pod))
          await isAskedAgain(web, pod.name)
        }
      })
      return async () => ({ ...(await seen()), backAt, denied })
    })
    it(`a probe fails, nothing else does, and the pod goes on under its uid: ${title}`, async function () {
      this.timeout(180_000 + ROUNDS * 60_000)
      for (const round of rounds) {
        const { backAt, denied, ...observed } = await round()
        const { hooks, answers } = observed
        console.log(`      hooks ${hooks.map(({ ms }) => ms.toFixed(0)).join(', ')} ms`)
        const after = hooks.map(({ at, ms }, time) => Math.round((backAt[time] ?? NaN) - at + ms))
        console.log(`      restarted after ${after.join(', ')} ms`)
        endedInTime(observed, 0)
        expect(hooks).to.have.length(restarts)
        // An entry without a port covers the whole pod.
        expect([...denied]).to.deep.equal([container === 'app' ? undefined : 8081])
        if (isHung) continue
        lostNothing(observed)
        expect(answers).to.deep.equal({ [PROVED]: restarts })
      }
    })
  }

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
      await restart(web)
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
    expect(observed.hooks).to.have.length(2)
    expect(observed.answers).to.deep.equal({ [PROVED]: 2 })
  })
})
