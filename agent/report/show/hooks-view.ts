import type { Clock } from '../../base/clock.ts'
import { saysThatItEnds } from '../../rules/drain/eligible.ts'
import type { Millis, PodFact } from '../../rules/drain/facts.ts'
import type { HooksView } from '../snapshot/snapshot.ts'
import type { Sources } from '../../round/gather/sources.ts'

/** The pause after a count, as a multiple of its duration: pods and holders change all the time. */
const REST = 100
/** The most names in each list; the counts include all. */
const NAMED = 20

interface HooksViewParts {
  readonly cluster: { readonly pods: { values(): Iterable<PodFact> } }
  readonly inventory: Pick<Sources['inventory'], 'byHost' | 'readAt'>
}

/**
 * Which routed workloads have no hook, a hook without a fallback, or a container without a hook. A pod counts as routed if it is Ready and a holder lists its own
 * address. So pods on their host's network, which share its address, are not counted, and neither are nodes that APISIX discovers.
 */
export function createHooksView(
  { cluster, inventory }: HooksViewParts,
  clock: Pick<Clock, 'now'>
): () => HooksView {
  let found = viewOf([])
  let restUntil: Millis = -Infinity
  return () => {
    const from = clock.now()
    if (inventory.readAt() === undefined || from < restUntil) return found
    const routed: PodFact[] = []
    for (const pod of cluster.pods.values()) {
      const isSteady = pod.ready && !pod.hostNetwork && !saysThatItEnds(pod)
      if (isSteady && pod.ips.some(ip => inventory.byHost(ip).length > 0)) routed.push(pod)
    }
    found = viewOf(routed)
    const to = clock.now()
    restUntil = to + Math.max(1000, REST * (to - from))
    return found
  }
}

function viewOf(pods: readonly PodFact[]): HooksView {
  const without = new Map<string, number>()
  const bare = new Map<string, number>()
  const early = new Map<string, number>()
  const routed = new Set<string>()
  for (const pod of pods) {
    const name = `${pod.namespace}/${workloadOf(pod)}`
    routed.add(name)
    if (pod.hook === 'safe') continue
    const counts = pod.hook === 'bare' ? bare : pod.hook === 'part' ? early : without
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const list = (counts: ReadonlyMap<string, number>) =>
    [...counts]
      .map(([name, pods]) => ({ name, pods }))
      .sort((a, b) => b.pods - a.pods || (a.name < b.name ? -1 : 1))
      .slice(0, NAMED)
  return {
    routed: routed.size,
    without: list(without),
    bare: list(bare),
    early: list(early),
    counts: { without: without.size, bare: bare.size, early: early.size }
  }
}

/** A ReplicaSet's name is its Deployment's and a hash. */
const workloadOf = ({ owner, name }: PodFact): string =>
  owner === undefined ? `Pod/${name}` : owner.replace(/^ReplicaSet\/(.+)-[a-z0-9]+$/, 'Deployment/$1')
