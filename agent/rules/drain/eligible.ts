import { SKIP, readOptions } from './annotations.ts'
import type { Witness } from './drain.ts'
import type { PodFact } from './facts.ts'
import type { DrainSettings, Seen } from './seen.ts'

/** Whether a pod must be drained, and by which witnesses; or why not, in words for its operator. */
type Eligibility =
  | { readonly ends: true; readonly witnesses: readonly Witness[] }
  | { readonly ends: false; readonly reason: 'skip' | 'stays' | 'asking'; readonly why: string }

/**
 * The signs that the pod ends. Sufficient alone: its deletion, its object gone, a final phase. Not sufficient alone:
 * - a terminating endpoint: any writer of EndpointSlices could mark a pod that serves;
 * - a hook, unless Kubernetes agrees: a liveness restart calls preStop too, with the pod Ready and staying;
 * - DisruptionTarget, which is set before the deletion and may be a false alarm.
 * A hook and DisruptionTarget together are sufficient: an end that only the kubelet knows of (host shutdown, eviction under pressure) has
 * only these two signs.
 */
export function witnessesOf(seen: Seen): Witness[] {
  const { pod } = seen
  const hooked = seen.hookAt !== undefined
  const disrupted = pod.disruptionTarget && hooked
  const witnesses: [Witness, boolean][] = [
    ['deletion', pod.deletionAt !== undefined],
    ['deleted', seen.gone],
    ['phase', isOver(pod)],
    ['slice', seen.sliceTerminating],
    ['disruption', disrupted],
    ['hook', hooked && (seen.hookConfirmed === true || disrupted)]
  ]
  const says = witnesses.filter(([, does]) => does).map(([witness]) => witness)
  return says.every(witness => witness === 'slice') ? [] : says
}

/** Whether a drain must begin. */
export function eligible(seen: Seen, settings: Pick<DrainSettings, 'someNamespacesOnly'>): Eligibility {
  if (readOptions(seen.pod.annotations).skip) {
    return { ends: false, reason: 'skip', why: `the pod asks to be left alone (${SKIP})` }
  }
  const witnesses = witnessesOf(seen)
  const [first] = witnesses
  if (first === undefined) {
    return seen.hookAt !== undefined && seen.hookConfirmed === undefined
      ? { ends: false, reason: 'asking', why: 'Kubernetes has not yet said whether the pod ends' }
      : {
          ends: false,
          reason: 'stays',
          why: 'Kubernetes does not say that the pod ends (a container restart?)'
        }
  }
  // Finished Jobs stay as objects for days, and slices may list a gone pod for a while. So such pods only matter while a holder
  // lists them. If that is not known yet, a gone pod is drained and a finished one is not.
  const finished = seen.gone || (isOver(seen.pod) && seen.hookAt === undefined)
  const unlisted = seen.gone ? seen.listed === false : seen.listed !== true
  if (finished && unlisted) {
    return { ends: false, reason: 'stays', why: 'the pod has ended and no holder lists it' }
  }
  // Another pod may have the address by now. An agent that does not see all pods cannot know.
  if (settings.someNamespacesOnly && isOver(seen.pod) && seen.hookAt === undefined) {
    return { ends: false, reason: 'stays', why: 'the pod has finished, and its address may be another pod’s' }
  }
  return { ends: true, witnesses }
}

/**
 * Whether the pod's containers have ended for good, or are about to. Such a pod serves no request, and another pod may have its IP already.
 */
export const isOver = (pod: PodFact): boolean => pod.phase === 'Failed' || pod.phase === 'Succeeded'

/** Whether the object itself shows that the pod ends. An end that only the kubelet knows of sets nothing but DisruptionTarget. */
export const saysThatItEnds = (pod: PodFact): boolean =>
  pod.deletionAt !== undefined || pod.disruptionTarget || isOver(pod)
