import type { Drain } from '../../rules/drain/drain.ts'
import type { PodFact } from '../../rules/drain/facts.ts'
import {
  elsewhere,
  hiddenPlaces,
  type Answers,
  type Behind,
  type HiddenPlace
} from '../../rules/plan/hidden.ts'
import type { World } from '../../rules/plan/holder.ts'
import { LOAD_IT } from '../../rules/proof/verdict.ts'
import type { ServiceName } from '../../kubernetes/facts/slice-store.ts'
import type { Memory } from './memory.ts'
import type { Sources } from './sources.ts'

/** The facts about a pod's Services, and about names that may stand for the pod. */
function behindOf(
  { cluster }: Pick<Sources, 'cluster'>,
  pod: PodFact,
  services: readonly ServiceName[],
  isListed: boolean,
  answers: Answers
): Behind {
  const known = ({ namespace, name }: ServiceName) => cluster.services.byName(namespace, name)
  // The watch of slices may be ahead of the watch of Services.
  const isCurrent = cluster.slices.servicesOf(pod).every(service => known(service) !== undefined)
  return {
    services: services.map(service => known(service) ?? service),
    elsewhere: elsewhere(pod, cluster.slices.listing(pod)),
    aliasesTo: key => cluster.services.aliasesTo(key),
    servicesKnown: isCurrent && cluster.parts().every(({ name, synced }) => name !== 'services' || synced),
    isNodePort: port => port !== undefined && cluster.services.isNodePort(port),
    isListed,
    ...answers
  }
}

/** Updates `memory.hidden`: the places from which requests may reach the pod, although no list of nodes shows that. */
export function rememberHidden(drain: Drain, memory: Memory, world: World, sources: Sources): void {
  const { cluster, inventory } = sources
  const { pod } = drain
  const services = cluster.slices.servicesOf(pod)
  if (services.length > 0) memory.services = services
  const places = [...memory.places.values()]
  const unread = unreadPlace(places.length > 0 ? [] : memory.services, sources)
  const found = [
    ...hiddenPlaces(
      world,
      pod,
      behindOf(sources, pod, memory.services, places.length > 0, inventory.answers(pod))
    ),
    ...(unread ? [unread] : [])
  ]
  for (const [key, { isPassing }] of memory.hidden) if (isPassing) memory.hidden.delete(key)
  for (const place of found) memory.hidden.set(`${place.holder} ${place.why}`, place)
}

/**
 * A place that stands for a missing or an empty inventory. Only the inventory shows places that lead to the pod without its address, such
 * as a ClusterIP. So nothing is proved without an inventory.
 */
function unreadPlace(
  services: readonly ServiceName[],
  { cluster, inventory, probe, barrier }: Sources
): HiddenPlace | undefined {
  const place = (why: string, change: string) =>
    ({ holder: 'inventory', isPassing: true, why, change }) as const
  if (inventory.readAt() === undefined)
    return place(
      'the holders have not been read since this agent started',
      'wait for the first listing; if it fails, the log says why (apisix.admin)'
    )
  const gateways = cluster.gateways()
  if (inventory.isEmpty() && services.length > 0) {
    const other = gateways.find(({ id }) => {
      const workers = barrier?.state(id)?.told?.workers ?? []
      const sighted = probe?.sighting(id)?.holders.size ?? 0
      return sighted > 0 || workers.some(({ revision }) => (revision ?? 0) > 0)
    })
    if (other)
      return place(
        `the Admin API lists nothing at all, and ${other.name} has a configuration`,
        'check apisix.admin: is it the etcd of these gateways?'
      )
  }
  return undefined
}

/** The first list with a node that is a name, or is discovered; `undefined`: every node is a literal address. */
export function notLiteral({
  names,
  byHost,
  discovered
}: Pick<Sources['inventory'], 'names' | 'byHost' | 'discovered'>): HiddenPlace | undefined {
  const [found] = discovered()
  const [name] = names()
  if (!found && name === undefined) return undefined
  const holder = found?.key ?? byHost(name as string)[0]?.key ?? 'a plugin'
  const why = found ? 'APISIX finds its nodes' : `${name} is a name`
  return { holder, why: `${why}, so reads prove nothing`, change: LOAD_IT }
}
