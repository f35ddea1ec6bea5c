import { areLive } from '../../kubernetes/reflect/watch-status.ts'
import type { Drain, Drains } from '../../rules/drain/drain.ts'
import type { EndpointFact, Millis, NodeKey, PodFact } from '../../rules/drain/facts.ts'
import { addressOf } from '../../gateway/apisix/holders.ts'
import { sameList } from '../../gateway/barrier/desired-entry.ts'
import {
  areWhole,
  candidatesOf,
  chosenOf,
  groupOf,
  lastEndpointHold,
  mayFollow,
  mayTakeOver,
  nodesOfAll,
  NO_SUCCESSORS,
  type Candidate,
  type Successors
} from '../../rules/plan/successors.ts'
import type { World } from '../../rules/plan/holder.ts'
import type { Status } from '../gather/drain-status.ts'
import type { Sources } from '../gather/sources.ts'
import PQueue from 'p-queue'
import type { Clock } from '../../base/clock.ts'
import { fieldsOf, numberOf } from '../../base/read.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import { controllerOf } from '../../kubernetes/facts/pod-fact.ts'
import { inTime } from '../../kubernetes/transport/connection.ts'

/** The parts of an ending pod's status that are needed here. */
type Remembered = Pick<Status, 'standing' | 'successors'>

/** The phases in which an ending pod still answers requests. */
const SERVING: ReadonlySet<Drain['phase'] | undefined> = new Set(['draining', 'proven', 'expired'])

interface Group {
  readonly slices: readonly (readonly EndpointFact[])[]
  readonly candidates: readonly Candidate[]
  /** Whether every pod in the slices was known with its address there: the watch of slices can be ahead of the watch of pods. */
  readonly isComplete: boolean
}

/**
 * Finds the successors of each ending pod. Hundreds of pods of one Deployment may end at once, and each round asks for all of them. So
 * the candidates of a group of pods are kept until a slice of its Services changes.
 */
export function createSuccession(
  { pods, slices, parts }: Pick<Sources['cluster'], 'pods' | 'slices' | 'parts'>,
  world: World,
  mayCome: (pod: PodFact) => boolean = () => true
) {
  let groups = new Map<string, Group>()
  let next = new Map<string, Group>()
  /** The candidates that were asked for since something has changed, and whether they may take over. */
  let asked = new Map<Candidate, boolean>()
  const keys = new WeakMap<PodFact, { readonly of: readonly unknown[]; readonly key: string }>()
  /** The candidates whose nodes are the successors in a status. */
  const chosen = new WeakMap<Remembered, readonly Candidate[]>()

  /** As `groupOf`, which is asked in each round for hundreds of pods that do not change. */
  const keyOf = (pod: PodFact, standing: Remembered['standing'], isWhole: boolean): string => {
    const known = keys.get(pod)
    if (known?.of[0] === standing && known.of[1] === isWhole) return known.key
    const key = groupOf(pod, standing, isWhole)
    keys.set(pod, { of: [standing, isWhole], key })
    return key
  }

  const candidates = (pod: PodFact, { standing }: Remembered, isWhole: boolean): readonly Candidate[] => {
    const key = keyOf(pod, standing, isWhole)
    if (key === '') return []
    const known = next.get(key)
    if (known) return known.candidates
    const services = [...new Set(standing.map(({ service }) => service))]
    const slicesOf = (service: string) => slices.of(pod.namespace, service)
    const now = services.map(slicesOf)
    const before = groups.get(key)
    const isSame = before?.isComplete === true && before.slices.every((list, i) => sameList(list, now[i]))
    const group = isSame
      ? before
      : {
          slices: now,
          candidates: candidatesOf(pod, standing, isWhole, slicesOf, uid => pods.get(uid)),
          isComplete: now
            .flat()
            .flatMap(({ endpoints }) => endpoints)
            .every(
              ({ podUid, ready, address }) =>
                !ready || podUid === undefined || pods.get(podUid)?.ips.includes(address) === true
            )
        }
    next.set(key, group)
    return group.candidates
  }

  /**
   * Those of the last successors that still serve, for the time in which no other pod may take over. They count even if they end, or if no
   * slice lists them any more: without them the place would have no node. A pod of another role at a successor's address does not count.
   */
  const remaining = (pod: PodFact, last: Successors, isWhole: boolean, drains: Drains): Successors => {
    const serves = (node: NodeKey) =>
      pods
        .byIp(addressOf(node).host)
        .some(
          other =>
            mayFollow(pod, other, isWhole) &&
            (SERVING.has(drains.get(other.uid)?.phase) || mayTakeOver(world, drains, other))
        )
    const left = Object.entries(last).map(([port, nodes]) => [port, nodes.filter(serves)] as const)
    return left.some(([, nodes]) => nodes.length > 0) ? Object.fromEntries(left) : NO_SUCCESSORS
  }

  return {
    holdOf(pod: PodFact, { standing }: Remembered, lateMs: Millis): Millis {
      const seesAll = areLive(parts(), ['pods', 'endpointslices'])
      const services = seesAll ? [...new Set(standing.map(({ service }) => service))] : undefined
      const all = services?.flatMap(service => slices.of(pod.namespace, service))
      return lastEndpointHold(pod, { slices: all, mayCome, lateMs })
    },
    /** Says of a node that was named as a successor of the pod whether its address is a pod's that may not follow it. */
    takenFor:
      (pod: PodFact) =>
      (node: NodeKey): boolean => {
        const owners = pods.byIp(addressOf(node).host)
        if (owners.length === 0) return false
        const isWhole = areWhole(pod.ips.flatMap(ip => world.holdersOf(ip)))
        return !owners.some(other => mayFollow(pod, other, isWhole))
      },
    /** Called when anything may have changed. Forgets groups without pods. */
    renew(): void {
      groups = next
      next = new Map()
      asked = new Map()
    },
    /** The pod's successors: the same object as in `status` while nothing has changed. */
    of(pod: PodFact, status: Remembered, drains: Drains): Successors {
      const isWhole = areWhole(pod.ips.flatMap(ip => world.holdersOf(ip)))
      const mayServe = (candidate: Candidate): boolean => {
        const known = asked.get(candidate)
        if (known !== undefined) return known
        const { uid, pod: before } = candidate
        const now = pods.get(uid)
        // No slice shows a change of a candidate's labels, annotations or owner, and slices show a new address later.
        const isStill =
          now === before ||
          (now !== undefined && mayFollow(pod, now, isWhole) && now.ips.join() === before.ips.join())
        asked.set(candidate, isStill && mayTakeOver(world, drains, now))
        return mayServe(candidate)
      }
      const those = chosenOf(pod, candidates(pod, status, isWhole), mayServe)
      if (those.length > 0 && sameList(those, chosen.get(status))) return status.successors
      chosen.set(status, those)
      const found = those.length > 0 ? nodesOfAll(those) : remaining(pod, status.successors, isWhole, drains)
      if (JSON.stringify(found) !== JSON.stringify(status.successors)) status.successors = found
      return status.successors
    }
  }
}

export type Succession = ReturnType<typeof createSuccession>

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
    const answer = queue.add(() => inTime({ clock }, signal => ask(pod, signal)))
    void answer.catch(() => true).then(found => (learn(found), found !== mayCome && changed()))
    return mayCome
  }
}
