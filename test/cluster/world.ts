import { forkLoad, type LoadProcess } from '../../sandbox/load/process.ts'
import { now } from '../../sandbox/now.ts'
import { startOwner, upstreamId, type OwnedService, type Owner } from '../../sandbox/owner/owner.ts'
import { eventually } from '../plugin/eventually.ts'
import { enterCgroup } from './cgroups.ts'
import type { Cluster } from './cluster.ts'
import { startGateways, type Gateways } from './gateways.ts'
import { createKubectl, type Kubectl } from './kubectl.ts'
import { namespace } from './objects/fields.ts'
import { NAMESPACE, SERVICE_PORT, serviceOf, workload, type WorkloadOptions } from './objects/workload.ts'
import { recordPods, type PodRecord, type PodRecords } from './pods.ts'
import { cgroupOf } from './shares.ts'
import { watchSlices } from './slices.ts'

/** A cluster with gateways, and the means to put workloads behind them. */
export interface World {
  readonly cluster: Cluster
  readonly kube: Kubectl
  readonly gateways: Gateways
  readonly records: PodRecords
  /**
   * Starts a workload, puts it behind the gateways, and waits until every gateway routes to it.
   *
   * @param own starts the owner of the workload's upstream; default: the sandbox's owner
   */
  run(options: WorkloadOptions, own?: StartOwner): Promise<Workload>
  /** Starts the sandbox's owner of this Service. `lag` is the time from an endpoint's change to the owner's write. */
  own(service: OwnedService, lag?: typeof OWNER_LAG): Owner
  stop(): Promise<void>
}

export type StartOwner = (service: OwnedService) => Promise<Owner>

/** Pods behind a Service behind the gateways. */
export interface Workload {
  readonly options: WorkloadOptions
  /** `deployment/name` or `statefulset/name`. */
  readonly target: string
  pods(): readonly PodRecord[]
  /** When the owner first wrote an empty upstream, in ms since the epoch; Infinity: never. */
  emptiedAt(): number
  /** Whether the owner's last write has exactly the addresses of the serving pods of `app`; default: the workload's own app. */
  isListed(app?: string): boolean
  /** The name of the pod that answers a request now. */
  ask(): Promise<string>
  startLoad(options?: WorkloadLoad): LoadProcess
  /** Changes the workload, as an update does. */
  update(change: Partial<WorkloadOptions>): Promise<void>
  remove(): Promise<void>
}

export interface WorkloadLoad {
  /** How long the app takes for each answer, in ms; default 0. */
  readonly answerMs?: number
  readonly uploads?: boolean
  /** Requests a second; default 100. */
  readonly rate?: number
}

/** The time from an endpoint's change to the owner's write. It is a stress, as in the sandbox: the real controller 1.8 needs 0.1 s. */
const OWNER_LAG = { minMs: 500, maxMs: 2000 }
/** The machine has two cores for everything, so slow answers are accepted: only failures count. */
const LOAD = { rate: 100, seed: 1, timeoutMs: 30_000 }

export async function startWorld(cluster: Cluster): Promise<World> {
  const { controlPlane } = cluster
  const clients = cgroupOf(cluster.name, 'clients')
  const kube = createKubectl(controlPlane.kubeconfig)
  const records = recordPods(controlPlane)
  const slices = watchSlices(controlPlane)
  await kube.apply(namespace(NAMESPACE))
  const gateways = await startGateways(kube, controlPlane)
  const own: World['own'] = (service, lag = OWNER_LAG) =>
    startOwner({ slices, admin: gateways.admin, services: [service], lag, seed: 1 })
  const imitated: StartOwner = service => Promise.resolve(own(service))
  return {
    cluster,
    kube,
    gateways,
    records,
    own,
    run: (options, own = imitated) => runWorkload(options, own, { clients, kube, gateways, records }),
    async stop() {
      await records.stop()
      await slices.stop()
    }
  }
}

/** `clients` is the cgroup of the clients. */
type Around = Pick<World, 'kube' | 'gateways' | 'records'> & { readonly clients: string }

async function runWorkload(options: WorkloadOptions, own: StartOwner, around: Around): Promise<Workload> {
  const { clients, kube, gateways, records } = around
  const { name, replicas, kind = 'Deployment' } = options
  const target = `${kind.toLowerCase()}/${name}`
  await kube.apply(serviceOf(options), workload(options))
  const service = { namespace: NAMESPACE, name, port: SERVICE_PORT }
  const owner = await own(service)
  // The gateways' stand-in for a router uses the first part of the path as the upstream's id.
  const path = `/${upstreamId(service)}`
  const remove = async () => {
    await owner.close()
    const mine = [`--namespace=${NAMESPACE}`, `--selector=app=${name}`] as const
    // Deletes all pods by force, because the hook of the last pod would wait for a replacement until its deadline.
    await kube('delete', 'deployments,statefulsets,replicasets', ...mine, '--cascade=orphan')
    await kube('delete', 'pods', ...mine, '--grace-period=0', '--force')
    await kube('delete', 'services', ...mine)
    await eventually(`${name} is gone`, () => records.of(name).every(({ goneAt }) => goneAt))
  }
  try {
    await eventually(
      `${name} is ready`,
      () => records.of(name).filter(pod => pod.isReady).length === replicas
    )
    await eventually(`the owner has written ${name}`, () =>
      owner.writes.some(({ nodes, acceptedAt }) => acceptedAt && nodes.length === replicas)
    )
    for (const proxy of gateways.proxies)
      await eventually(`${proxy} routes to ${name}`, async () => (await fetch(`${proxy}${path}`)).ok)
  } catch (err) {
    await remove()
    throw err
  }
  return {
    options,
    target,
    pods: () => records.of(name),
    emptiedAt() {
      const empty = owner.writes.find(({ nodes, acceptedAt }) => acceptedAt && nodes.length === 0)
      return Date.now() - (now() - (empty?.acceptedAt ?? Infinity))
    },
    isListed(app = name) {
      const written = owner.writes.findLast(({ acceptedAt }) => acceptedAt)?.nodes.map(({ host }) => host)
      const serving = records.of(app).filter(pod => pod.isReady && !pod.endingAt && !pod.goneAt)
      return new Set(written).symmetricDifference(new Set(serving.map(({ address }) => address))).size === 0
    },
    async ask() {
      const [proxy = ''] = gateways.proxies
      const { pod } = (await (await fetch(`${proxy}${path}`)).json()) as { pod: string }
      return pod
    },
    startLoad({ answerMs = 0, uploads = false, rate = LOAD.rate } = {}) {
      const load = forkLoad({
        ...LOAD,
        rate,
        targets: gateways.proxies,
        path: `${path}?ms=${answerMs}`,
        traffic: uploads ? 'all' : 'no-uploads'
      })
      if (load.pid !== undefined) enterCgroup(clients, load.pid)
      return load
    },
    update: change => kube.apply(workload({ ...options, ...change })),
    remove
  }
}
