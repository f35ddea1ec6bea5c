import type { BarrierGateway } from '../../gateway/apisix/barrier-wire.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import { isOver } from '../../rules/drain/eligible.ts'
import type { PodFact, PodUid } from '../../rules/drain/facts.ts'
import {
  elsewhere,
  hiddenPlaces,
  streamed,
  leadsTo,
  type Answers,
  type Behind,
  type HiddenPlace,
  type LeadsTo
} from '../../rules/plan/hidden.ts'
import type { World } from '../../rules/plan/holder.ts'
import { LOAD_IT } from '../../rules/proof/verdict.ts'
import type { ServiceName } from '../../kubernetes/facts/slice-store.ts'
import type { Memory } from './memory.ts'
import type { Sources } from './sources.ts'

/** The sources in which hidden places are found (`HiddenPlace`). */
export interface HiddenParts {
  readonly cluster: Pick<Sources['cluster'], 'pods' | 'slices' | 'services' | 'parts'>
  readonly inventory: Pick<Sources['inventory'], 'holders' | 'byHost' | 'answers' | 'isL4'>
}

/** The facts about a pod's Services, and about names that may stand for the pod. */
function behindOf(
  { cluster }: Pick<HiddenParts, 'cluster'>,
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

/**
 * All places that may lead to pods without listing them, for `doctor` and the snapshot. Every pod and node is checked.
 *
 * @param coversL4 whether every gateway covers L4, so that L4 places hide no pod
 */
export function everyHidden(parts: HiddenParts, coversL4 = false): readonly LeadsTo[] {
  const { cluster, inventory } = parts
  const pods = [...cluster.pods.values()].filter(pod => !isOver(pod))
  return leadsTo({
    world: {
      holders: () => inventory.holders().values(),
      holdersOf: inventory.byHost,
      ownersOf: ip => cluster.pods.byIp(ip).filter(pod => !isOver(pod)),
      portsOf: pod => cluster.slices.portsOf(pod)
    },
    pods,
    isL4: key => !coversL4 && inventory.isL4(key),
    behind: (pod, isListed) =>
      behindOf(parts, pod, cluster.slices.servicesOf(pod), isListed, inventory.answers(pod))
  })
}

/** Updates `memory.hidden`: the places from which requests may reach the pod, although no list of nodes shows that. */
export function rememberHidden(drain: Drain, memory: Memory, world: World, sources: Sources): void {
  const { cluster, inventory } = sources
  const { pod } = drain
  const services = cluster.slices.servicesOf(pod)
  if (services.length > 0) memory.services = services
  const places = [...memory.places.values()]
  const unread = unreadPlace(drain, places.length > 0 ? [] : memory.services, sources)
  const found = [
    ...hiddenPlaces(
      world,
      pod,
      behindOf(sources, pod, memory.services, places.length > 0, inventory.answers(pod))
    ),
    ...(coversL4(pod.uid, sources)
      ? []
      : places.flatMap(({ holder, node }) => (inventory.isL4(holder.key) ? [streamed(holder, node)] : []))),
    ...(unread ? [unread] : [])
  ]
  for (const [key, { isPassing }] of memory.hidden) if (isPassing) memory.hidden.delete(key)
  for (const place of found) memory.hidden.set(`${place.holder} ${place.why}`, place)
}

/**
 * A place that stands for a missing or an empty inventory. Only the inventory shows places that lead to the pod without its address, such
 * as a ClusterIP. So nothing is proved without an inventory. Where L4 is on and not covered, only the stream routes show who gets sessions.
 */
function unreadPlace(
  { uid, since }: Drain,
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
  const open = gateways.find(({ id }) => barrier?.reading(uid, id)?.word?.l4 === false)
  if (open && inventory.streamsReadAt() < since)
    return place(
      `L4 is on at ${open.name} and not covered, and the stream routes have not been read since`,
      'let the plugin cover TCP (docs/long-lived.md, L4), or set apisix.proxy_mode where apisix.admin leads too'
    )
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

/** Whether every worker of every gateway seals and counts L4 sessions too. `states`: what each gateway reports; `undefined`: nothing. */
export const everyWorkerCoversL4 = (
  states: readonly (Pick<BarrierGateway, 'workers'> | undefined)[]
): boolean =>
  states.length > 0 &&
  states.every(
    state =>
      state && state.workers.length > 0 && state.workers.every(({ l4 = 'covered' }) => l4 === 'covered')
  )

/** Whether every gateway has reported about this pod that it seals and counts L4 sessions too. */
function coversL4(uid: PodUid, { cluster, barrier }: Sources): boolean {
  const gateways = cluster.gateways()
  return gateways.length > 0 && gateways.every(({ id }) => barrier?.reading(uid, id)?.word?.l4 === true)
}
