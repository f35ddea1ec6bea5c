import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { scaleAgent } from './agent.ts'
import { APP } from './images/names.ts'
import { NAMESPACE, type WorkloadOptions } from './objects/workload.ts'
import { inWords, restart, underLoad, type Observed } from './rollout.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

const IN_NAMESPACE = `--namespace=${NAMESPACE}`
const GONE_MS = 60_000

interface Scenario {
  readonly title: string
  readonly options?: Partial<WorkloadOptions>
  /** How many pods it ends. */
  readonly ends: number
  readonly act: (web: Workload) => Promise<void>
}

const kube = (...args: readonly string[]) => world().kube(...args, IN_NAMESPACE)
const serving = (web: Workload) => web.pods().filter(({ isReady, endingAt }) => isReady && !endingAt)
const scale = async (web: Workload, replicas: number) => {
  await kube('scale', web.target, `--replicas=${replicas}`)
  await eventually(`${replicas} serve`, () => serving(web).length === replicas, GONE_MS)
}
const begin = (web: Workload) => kube('rollout', 'restart', web.target)
const finish = (web: Workload) => kube('rollout', 'status', web.target, '--timeout=120s')

/** None of them may cost a request: what serves is always there, somewhere. */
const SCENARIOS: readonly Scenario[] = [
  {
    title: 'a rolling update that only surges',
    options: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    ends: 3,
    act: web => restart(world(), web)
  },
  {
    title: 'a rolling update of the only pod',
    options: { replicas: 1 },
    ends: 1,
    act: web => restart(world(), web)
  },
  {
    title: 'a StatefulSet: the same names, new addresses',
    options: { kind: 'StatefulSet' },
    ends: 3,
    act: web => restart(world(), web)
  },
  {
    title: 'scaling from ten to one',
    options: { replicas: 10 },
    ends: 9,
    act: web => scale(web, 1)
  },
  {
    title: 'scaling from one to ten and back',
    options: { replicas: 1 },
    ends: 9,
    async act(web) {
      await scale(web, 10)
      await scale(web, 1)
    }
  },
  {
    title: 'kubectl drain of a host, with a PodDisruptionBudget',
    options: { replicas: 4 },
    ends: 2,
    async act(web) {
      const { name } = web.options
      await kube('create', 'pdb', name, `--selector=app=${name}`, '--max-unavailable=1')
      try {
        await kube('drain', 'host-b', `--pod-selector=app=${name}`, '--ignore-daemonsets', '--timeout=90s')
      } finally {
        await kube('uncordon', 'host-b')
        await kube('delete', 'pdb', name)
      }
      await finish(web)
    }
  },
  {
    title: 'an eviction',
    ends: 1,
    async act(web) {
      const pod = serving(web)[0]?.name ?? ''
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod}/eviction`
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod } }
      const { status, json } = await world().cluster.controlPlane.call('POST', path, eviction)
      expect(status, JSON.stringify(json)).to.equal(201)
      await finish(web)
    }
  },
  {
    title: 'two containers with hooks',
    options: {
      beside: [
        {
          name: 'beside',
          image: APP,
          imagePullPolicy: 'Never',
          env: [{ name: 'PORT', value: '8081' }],
          lifecycle: { preStop: { exec: { command: ['sleep', '1'] } } }
        }
      ]
    },
    ends: 3,
    act: web => restart(world(), web)
  },
  {
    title: 'an image without a shell, by the helper',
    options: { arm: 'apisix-drain-hook' },
    ends: 3,
    act: web => restart(world(), web)
  },
  {
    title: 'the API server restarted in the middle of a rolling update',
    options: { replicas: 6 },
    ends: 6,
    async act(web) {
      await begin(web)
      await world().cluster.controlPlane.restartApiServer()
      await finish(web)
    }
  },
  {
    title: 'the controller manager restarted in the middle of a rolling update',
    options: { replicas: 6 },
    ends: 6,
    async act(web) {
      await begin(web)
      await world().cluster.controlPlane.restartControllerManager()
      await finish(web)
    }
  },
  {
    title: 'the agent updated in the middle of a rolling update',
    options: { replicas: 6 },
    ends: 6,
    async act(web) {
      const agent = ['deployment/apisix-drain', '--namespace=apisix'] as const
      await world().kube('rollout', 'restart', ...agent)
      await restart(world(), web)
      await world().kube('rollout', 'status', ...agent, '--timeout=120s')
    }
  }
]

/** Each with an app that drops what it has accepted at SIGTERM, and answers that take a while. */
describe('ends of pods under load, with apisix-drain', () => {
  const observe = async (
    name: string,
    options: Partial<WorkloadOptions>,
    act: (web: Workload) => Promise<void>
  ): Promise<Observed> => {
    const web = await world().run({ name, arm: 'apisix-drain', replicas: 3, exitsAtTerm: true, ...options })
    try {
      const observed = await underLoad(world(), web, () => act(web), { answerMs: 100 })
      console.log(`      ${inWords(observed)}`)
      return observed
    } finally {
      await web.remove()
    }
  }

  for (const [index, { title, options = {}, ends, act }] of SCENARIOS.entries())
    it(`loses no request: ${title}`, async () => {
      const { load, ended } = await observe(`scenario-${index}`, options, act)
      expect(load.failed, JSON.stringify(load.failures.slice(0, 3))).to.equal(0)
      expect(ended.length).to.equal(ends)
    })

  for (const grace of [0, 1, 5, 30])
    it(`a pod with ${grace} s of grace is gone by then`, async () => {
      const { ended } = await observe(`grace-${grace}`, { graceSeconds: grace || 30 }, async web => {
        const pod = serving(web)[0]?.name ?? ''
        await kube('delete', 'pod', pod, ...(grace === 0 ? ['--grace-period=0', '--force'] : []))
      })
      expect(ended.length).to.equal(1)
      // The kubelet lets two seconds pass at the end of a grace, and takes some to clear up.
      for (const { endingAt = 0, goneAt = 0 } of ended)
        expect(goneAt - endingAt).to.be.below((grace + 7) * 1000)
    })

  it('every pod ends within its grace by the fallback when the agents are taken away in the middle', async () => {
    const { ended, hooks } = await observe('abandoned', { replicas: 6 }, async web => {
      await begin(web)
      await scaleAgent(world(), 0)
      await finish(web)
      // An agent finishes the hooks that it holds, and the first rollout may be over by then: nobody answers in this one.
      await begin(web)
      await finish(web)
    })
    await scaleAgent(world(), 2)
    expect(ended.length).to.equal(12)
    for (const { endingAt = 0, goneAt = 0, graceSeconds = 0 } of ended)
      expect(goneAt - endingAt).to.be.below(graceSeconds * 1000)
    expect(Math.max(...hooks.map(({ ms }) => ms))).to.be.at.least(5000)
  })
})
