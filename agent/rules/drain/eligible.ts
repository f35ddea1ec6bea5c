import { SKIP, readOptions } from './annotations.ts'
import type { Drain, Stop, Witness } from './drain.ts'
import type { Millis, PodFact } from './facts.ts'
import type { DrainSettings, Seen } from './seen.ts'

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

/** Whether the object itself shows that the pod ends. Of an end that begins at the kubelet, it does so only when the containers are over. */
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
 */
export function backAgain(stop: Stop, pod: PodFact, now: Millis, isCurrent: boolean): string | undefined {
  if (!pod.ready) return undefined
  const isAnother = runOf(pod, stop.container) !== stop.run
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
