import type { PodFact } from '../drain/facts.ts'
import { hiddenPlaces, streamed, type Behind, type HiddenPlace } from './hidden.ts'
import type { HolderKey } from './holder.ts'
import type { World } from './world.ts'

/** A place that may lead to pods without listing them, and those pods. When such a pod ends, the answer to its hook has this `why`. */
export interface LeadsTo {
  readonly holder: HolderKey
  /** The name of the holder; `null` if it has none. */
  readonly name: string | null
  /** `null` if the place is not a single node: the nodes of a registry, or all nodes of a stream route. */
  readonly node: string | null
  readonly why: string
  readonly change: string
  /** Some of the pods that it may lead to, as `namespace/name`. */
  readonly pods: readonly string[]
  /** How many pods it may lead to in all. */
  readonly count: number
}

export interface LeadsToFacts {
  readonly world: Pick<World, 'holders' | 'holdersOf' | 'ownersOf' | 'portsOf'>
  readonly pods: Iterable<PodFact>
  readonly isL4: (holder: HolderKey) => boolean
  readonly behind: (pod: PodFact, isListed: boolean) => Behind
}

const NAMED = 5

/**
 * All hidden places of these pods, whether the pods end or not. Of pods with the same Services only one is checked. A pod that uses the
 * address or a port of its host is checked by itself.
 */
export function leadsTo({ world, pods, isL4, behind }: LeadsToFacts): readonly LeadsTo[] {
  const found = new Map<string, { readonly place: HiddenPlace; readonly pods: PodFact[] }>()
  const add = (place: HiddenPlace, more: readonly PodFact[]) => {
    const key = `${place.holder} ${place.why}`
    const known = found.get(key) ?? { place, pods: [] }
    for (const pod of more) known.pods.push(pod)
    found.set(key, known)
  }
  const alike = Map.groupBy(pods, pod => {
    const { services, isListed } = behind(pod, isListedIn(world, pod))
    const own = pod.hostNetwork || (pod.hostPorts ?? []).length > 0 ? pod.uid : ''
    return JSON.stringify([own, isListed, ...services.map(({ namespace, name }) => [namespace, name])])
  })
  for (const group of alike.values()) {
    const [pod] = group as [PodFact, ...PodFact[]]
    for (const place of hiddenPlaces(world, pod, behind(pod, isListedIn(world, pod))))
      // A temporary obstacle is not a place.
      if (!place.isPassing) add(place, group)
  }
  const names = new Map<HolderKey, string | undefined>()
  for (const holder of world.holders()) {
    names.set(holder.key, holder.name)
    if (!isL4(holder.key)) continue
    const owners = holder.nodes.flatMap(({ host }) => world.ownersOf(host))
    if (owners.length > 0) add({ ...streamed(holder, 'each of its nodes'), node: undefined }, owners)
  }
  return [...found.values()].map(({ place, pods: led }) => {
    const unique = [...new Set(led.map(({ namespace, name }) => `${namespace}/${name}`))]
    const { holder, node = null, why, change } = place
    const name = names.get(holder) ?? null
    return { holder, name, node, why, change, pods: unique.slice(0, NAMED), count: unique.length }
  })
}

const isListedIn = (world: LeadsToFacts['world'], { ips }: PodFact): boolean =>
  ips.some(ip => world.holdersOf(ip).length > 0)
