import { expect } from 'chai'
import { APP } from './images/names.ts'
import { NAMESPACE } from './objects/workload.ts'
import { finish, kube, oneOf, restart, scale, type Scenario } from './scenario.ts'
import { world } from './setup.ts'

/** A way in which pods end while other pods serve, or soon begin to serve: no request needs to fail. */
export interface End extends Pick<Scenario, 'options' | 'ends' | 'act'> {
  readonly title: string
  /** `arms.test.ts` tries this end too, without a hook. */
  readonly compared?: boolean
  /** This end affects parts that other scenarios need, so its scenario runs alone. */
  readonly alone?: boolean
  /** Agents end in this scenario, and their counts of answers are lost. So the test does not check the answers. */
  readonly uncounted?: boolean
}

const ALL: readonly End[] = [
  {
    title: 'a rolling update that only surges',
    options: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    ends: 3,
    compared: true,
    act: web => restart(web)
  },
  {
    title: 'a rolling update of the only pod',
    options: { replicas: 1 },
    ends: 1,
    compared: true,
    act: web => restart(web)
  },
  {
    title:
      'a rolling update on the addresses of the hosts: each successor has the address and port of a pod that ended',
    options: {
      arm: 'apisix-drain-hook',
      replicas: 2,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      pod: { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }
    },
    ends: 2,
    act: web => restart(web)
  },
  {
    title: 'scaling from ten to one',
    options: { replicas: 10 },
    ends: 9,
    compared: true,
    act: web => scale(web, 1)
  },
  {
    title: 'kubectl drain of a host, with a PodDisruptionBudget',
    options: { replicas: 4 },
    ends: 2,
    compared: true,
    alone: true,
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
    title: 'a StatefulSet: the same names, new addresses',
    options: { kind: 'StatefulSet' },
    ends: 3,
    act: web => restart(web)
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
    title: 'an eviction',
    ends: 1,
    async act(web) {
      const pod = oneOf(web)
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
    act: web => restart(web)
  },
  {
    title: 'an image without a shell, by the helper',
    options: { arm: 'apisix-drain-hook' },
    ends: 3,
    act: web => restart(web)
  },
  {
    title: 'the helper from an image volume, with no init container',
    options: { arm: 'apisix-drain-hook', helperFrom: 'image volume' },
    ends: 3,
    act: web => restart(web)
  },
  {
    title: 'the app is a native sidecar, with the hook on it, beside a container that ends at once',
    options: { asSidecar: true },
    ends: 3,
    act: web => restart(web)
  },
  {
    title: 'the controller manager restarted in the middle of a rolling update',
    options: { replicas: 6 },
    ends: 6,
    alone: true,
    act: web => restart(web, () => world().cluster.controlPlane.restartControllerManager())
  },
  {
    title: 'the agent updated in the middle of a rolling update',
    options: { replicas: 6 },
    ends: 6,
    alone: true,
    uncounted: true,
    async act(web) {
      const agent = ['deployment/apisix-drain', '--namespace=apisix'] as const
      await world().kube('rollout', 'restart', ...agent)
      await restart(web)
      await world().kube('rollout', 'status', ...agent, '--timeout=120s')
    }
  }
]

/** Only measured (`api-server.bench.ts`): Kubernetes itself can need longer than a grace to list the new pods. */
export const API_SERVER_RESTARTS: End = {
  title: 'the API server restarted in the middle of a rolling update',
  options: { replicas: 6 },
  ends: 6,
  alone: true,
  act: web => restart(web, () => world().cluster.controlPlane.restartApiServer())
}

/** First the scenarios that can run side by side, then the others. */
export const ENDS: readonly End[] = [
  ...ALL.filter(({ alone }) => !alone),
  ...ALL.filter(({ alone }) => alone)
]
