import PQueue from 'p-queue'
import type { Clock } from '../../base/clock.ts'
import { fieldsOf, numberOf } from '../../base/read.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import { controllerOf } from '../../kubernetes/facts/pod-fact.ts'
import type { Millis, PodFact } from '../../rules/drain/facts.ts'
import { inTime } from '../hold/hooks.ts'

/** How long an answer is used, in ms. */
const FRESH_MS = 5000
/** The most owners that are remembered or asked. */
const MOST = 2000

/**
 * Asks the API server whether the owner of a pod may make another pod before this one is gone. `true` while the answer is not known, and for
 * every owner but a ReplicaSet. One that wants no pod may belong to a Deployment that updates: then the next ReplicaSet makes a pod at once,
 * unless the strategy is Recreate (Kubernetes, pkg/controller/deployment/recreate.go). `changed` is called when an answer differs.
 */
export function createWishes(
  cluster: Pick<Cluster, 'call'>,
  clock: Clock,
  changed: () => void
): (pod: PodFact) => boolean {
  const queue = new PQueue({ concurrency: 8, intervalCap: 200, interval: 1000 })
  const known = new Map<string, { readonly until: Millis; readonly mayCome: boolean }>()
  const get = async (path: string, signal: AbortSignal) => {
    const { status, json } = await cluster.call('GET', path, undefined, signal)
    if (status !== 200 && status !== 404) throw new Error(`GET ${path}: ${status}`)
    const { metadata, spec } = fieldsOf(json)
    const { deletionTimestamp, ownerReferences } = fieldsOf(metadata)
    const { replicas, strategy } = fieldsOf(spec)
    const isThere = status === 200 && deletionTimestamp === undefined
    const wants = isThere && numberOf(replicas) !== 0
    return { isThere, wants, strategy: fieldsOf(strategy)['type'], controller: controllerOf(ownerReferences) }
  }
  const ask = async ({ namespace, owner = '' }: PodFact, signal: AbortSignal): Promise<boolean> => {
    const all = `/apis/apps/v1/namespaces/${namespace}`
    const set = await get(`${all}/replicasets/${owner.slice(owner.indexOf('/') + 1)}`, signal)
    if (set.wants || !set.isThere || !set.controller) return set.wants
    if (set.controller.kind !== 'Deployment') return true
    const deployment = await get(`${all}/deployments/${set.controller.name}`, signal)
    return deployment.wants && deployment.strategy !== 'Recreate'
  }
  return pod => {
    const key = `${pod.namespace}/${pod.owner}`
    const { until, mayCome } = known.get(key) ?? { until: -Infinity, mayCome: true }
    const isKnown = clock.now() < until || !pod.workload?.startsWith('ReplicaSet.apps/')
    if (isKnown || queue.size >= MOST) return mayCome
    if (known.size >= MOST) known.clear()
    const learn = (answer: boolean) => known.set(key, { until: clock.now() + FRESH_MS, mayCome: answer })
    learn(mayCome)
    const answer = queue.add(() => inTime(clock, signal => ask(pod, signal)))
    void answer.catch(() => true).then(found => (learn(found), found !== mayCome && changed()))
    return mayCome
  }
}
