import type { PodFact } from '../../agent/rules/drain/facts.ts'
import type { Plan } from '../../agent/rules/plan/plan.ts'
import type { Holder, World } from '../../agent/rules/plan/holder.ts'

/** A world from plain lists, which are indexed once: O(nodes + pods). */
export function worldOf(
  holders: Iterable<Holder>,
  pods: Iterable<PodFact>,
  portsOf: World['portsOf'] = () => [],
  isPodsPlace: (host: string) => boolean = () => false
): World {
  const all = [...holders]
  const byHost = Map.groupBy(
    all.flatMap(holder => [...new Set(holder.nodes.map(node => node.host))].map(host => ({ host, holder }))),
    entry => entry.host
  )
  const byIp = Map.groupBy(
    [...pods].flatMap(pod => pod.ips.map(ip => ({ ip, pod }))),
    entry => entry.ip
  )
  const holdersByHost = new Map([...byHost].map(([host, list]) => [host, list.map(e => e.holder)]))
  const podsByIp = new Map([...byIp].map(([ip, list]) => [ip, list.map(e => e.pod)]))
  return {
    holders: () => all,
    holdersOf: host => holdersByHost.get(host) ?? [],
    ownersOf: ip => podsByIp.get(ip) ?? [],
    isPodsPlace,
    portsOf
  }
}

/** The holders after a plan was carried out. */
export function applyPlan(holders: Iterable<Holder>, plan: Plan): Holder[] {
  const removed = new Map(
    plan.changes.map(change => [change.holder.key, new Set(change.nodes.map(node => node.key))])
  )
  return [...holders].map(holder => {
    const gone = removed.get(holder.key)
    return gone ? { ...holder, nodes: holder.nodes.filter(node => !gone.has(node.key)) } : holder
  })
}
