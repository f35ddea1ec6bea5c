import { readOptions, SKIP } from './annotations.ts'
import type { Drain, Stop, Witness, DrainSettings, Seen } from './drain.ts'
import type { Millis, PodFact } from './facts.ts'

/** Whether a pod must be drained; or why not, in words for its operator. */
type Eligibility =
  { readonly ends: true } | { readonly ends: false; readonly reason: 'skip' | 'stays'; readonly why: string }

/**
 * The signs that the pod ends, or that a container of it stops: its deletion, its object gone, a final phase, and a hook from its own
 * address. A terminating endpoint is none, because any writer of EndpointSlices could mark a pod that serves.
 */
export function witnessesOf({ pod, calls, routed, gone }: Seen): Witness[] {
  const stops = calls.filter(call => backAgain(call, pod, -Infinity, false) === undefined)
  const witnesses: [Witness, boolean][] = [
    ['deletion', pod.deletionAt !== undefined],
    ['deleted', gone],
    ['phase', isOver(pod)],
    ['hook', stops.length > 0 && servedBy(stops, pod, routed)?.length !== 0]
  ]
  return witnesses.filter(([, does]) => does).map(([witness]) => witness)
}

/** Whether a drain must begin. */
export function eligible(seen: Seen, settings: Pick<DrainSettings, 'someNamespacesOnly'>): Eligibility {
  if (readOptions(seen.pod.annotations).skip)
    return { ends: false, reason: 'skip', why: `the pod asks to be left alone (${SKIP})` }
  if (witnessesOf(seen).length === 0) {
    const why = 'Kubernetes does not say that the pod ends (a container restart?)'
    return { ends: false, reason: 'stays', why }
  }
  // Finished Jobs stay as objects for days, and slices may list a gone pod for a while. So such pods only matter while a holder
  // lists them. If that is not known yet, a gone pod is drained and a finished one is not.
  const finished = seen.gone || (isOver(seen.pod) && seen.hookAt === undefined)
  const unlisted = seen.gone ? seen.listed === false : seen.listed !== true
  if (finished && unlisted)
    return { ends: false, reason: 'stays', why: 'the pod has ended and no holder lists it' }
  // Another pod may have the address by now. An agent that does not see all pods cannot know.
  if (settings.someNamespacesOnly && isOver(seen.pod) && seen.hookAt === undefined)
    return { ends: false, reason: 'stays', why: 'the pod has finished, and its address may be another pod’s' }
  return { ends: true }
}

/**
 * Whether the pod's containers have ended for good, or are about to. Such a pod serves no request, and another pod may have its IP already.
 */
export const isOver = (pod: PodFact): boolean => pod.phase === 'Failed' || pod.phase === 'Succeeded'

/** Whether the object itself shows that the pod ends. An end that begins at the kubelet shows only when the containers have ended. */
export const saysThatItEnds = (pod: PodFact): boolean => pod.deletionAt !== undefined || isOver(pod)

/** How long after the longest grace a container that still runs was not stopped after all, in ms: its hook was called by hand. */
const NOT_STOPPED_MS = 10_000
/** How far the clocks of a host and of the agent may differ, in ms. `startedAt` has whole seconds. */
const SKEW_MS = 3000

/** Which run of the container the status shows; of all containers, if none of this name is shown. */
export const runOf = ({ runs = '' }: PodFact, container: string | undefined): string =>
  runs.split(' ').find(run => run.startsWith(`${container}=`)) ?? runs

/** Whether Kubernetes does not say that the pod ends: it may only restart a container. */
export const mayStay = ({ witnesses: { deletion, deleted, phase } }: Pick<Drain, 'witnesses'>): boolean =>
  deletion === undefined && deleted === undefined && phase === undefined

/**
 * Why the container serves again; `undefined` if it does not. Ready alone says nothing: without a probe it never changes, and no status is
 * written while the kubelet stops a container. The status may be late at the call, so a run that began before it is the one that stops.
 * A hook that named no container may be that of any, so it takes another run of each.
 */
export function backAgain(stop: Stop, pod: PodFact, now: Millis, isCurrent: boolean): string | undefined {
  if (!pod.ready) return undefined
  const runs = runOf(pod, undefined).split(' ')
  const isAnother = !stop.run.split(' ').some(run => runs.includes(run))
  if (isAnother && (pod.startedAt ?? -Infinity) + SKEW_MS > stop.at)
    return 'a container was restarted and the pod is Ready again'
  // A watch that is behind shows an older pod.
  const isOver = isCurrent && now >= stop.at + (pod.longestGraceMs ?? pod.graceMs) + NOT_STOPPED_MS
  return isOver ? 'the grace is over and the pod is still Ready' : undefined
}

/** The latest call of each container. */
export const latestStops = (known: readonly Stop[], calls: readonly Stop[]): readonly Stop[] => {
  const inOrder = [...known, ...calls].sort((a, b) => a.at - b.at)
  return [...new Map(inOrder.map(stop => [stop.container, stop])).values()]
}

/**
 * The ports that the containers serve: those that they declare, or else the routed ones that no other container declares. `undefined`: all.
 *
 * @param routed the ports of the pod to which something may route
 */
export function servedBy(
  stops: readonly Stop[],
  { containers = [] }: PodFact,
  routed: readonly number[]
): readonly number[] | undefined {
  const served = new Set<number>()
  for (const { container } of stops) {
    const own = containers.find(({ name }) => name === container)
    if (!own || containers.length === 1) return undefined
    const undeclared = () => routed.filter(port => !containers.some(({ ports }) => ports.includes(port)))
    for (const port of own.ports.length > 0 ? own.ports : undeclared()) served.add(port)
  }
  return [...served]
}

/** Controllers whose pods all do the same work. All ReplicaSets of a Deployment or a Rollout are one workload (`pod-fact.ts`). */
const INTERCHANGEABLE: ReadonlySet<string> = new Set([
  'ReplicaSet.apps',
  'ReplicationController',
  'CloneSet.apps.kruise.io'
])

/**
 * The role of a pod. Only a pod of the same role may get its requests, or its node in a list. `undefined`: no other pod has it.
 *
 * A place may lead to one pod of a StatefulSet or a DaemonSet, because its pods are shards, replicas of a primary, or what runs on one host.
 * So the pod that follows has the same name, or is on the same host. A mirror pod keeps its name, and all mirror pods of a host have that
 * host as their owner.
 */
export function roleOf({ namespace, workload, name, host }: PodFact): string | undefined {
  if (workload === undefined) return undefined
  const controller = workload.slice(0, workload.indexOf('/'))
  const role = (which: string) => `${namespace} ${workload} ${which}`
  if (INTERCHANGEABLE.has(controller)) return role('')
  if (controller === 'Node' || isKind(controller, 'StatefulSet')) return role(name)
  if (isKind(controller, 'DaemonSet') && host !== undefined) return role(host)
  return undefined
}

/** Whether the second pod may follow the first one: their role is the same. */
export function isOfRole(pod: PodFact, other: PodFact): boolean {
  const role = roleOf(pod)
  return role !== undefined && role === roleOf(other)
}

/** Whether its controller makes the next pod only after this one is gone. A DaemonSet with a surge makes it before the end. */
export const isReplacedAfterwards = ({ workload = '' }: PodFact): boolean =>
  ['StatefulSet', 'DaemonSet', 'Job'].some(kind => isKind(workload.slice(0, workload.indexOf('/')), kind))

/** Whether the next pod in its place will have the same address, because such a workload has one pod on each host. */
export const hasFixedAddress = ({ hostNetwork, owner = '' }: PodFact): boolean =>
  hostNetwork && (owner.startsWith('DaemonSet/') || owner.startsWith('Node/'))

/** Whether the controller is of this kind, in any API group. */
const isKind = (controller: string, kind: string): boolean =>
  controller === kind || controller.startsWith(`${kind}.`)

/** How long before its end a pod's labels may have changed because of that end, in ms. */
const SETTLED_MS = 120_000

/**
 * A new copy of a pod; of one that ends, with the labels that it had before. Operators give the label of a role to another pod shortly
 * before an end, or during it, and lists of nodes follow later.
 */
export function withLabels(pod: PodFact, last: PodFact | undefined, now: Millis): PodFact {
  if (last && saysThatItEnds(last)) return { ...pod, labelKey: last.labelKey }
  const changed = last && last.labelKey !== pod.labelKey
  const since = last?.before && now < last.before.until ? last.before : undefined
  const before = since ?? (changed ? { labelKey: last.labelKey, until: now + SETTLED_MS } : undefined)
  if (before === undefined) return pod
  return saysThatItEnds(pod) ? { ...pod, labelKey: before.labelKey } : { ...pod, before }
}
