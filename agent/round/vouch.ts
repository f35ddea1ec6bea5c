import type { Vouch } from './hold/holds.ts'
import { isNeeded } from '../kubernetes/reflect/watch-status.ts'
import type { Sources } from './gather/sources.ts'

/** Whether the agent may hold hooks now; if not, the reason. @param failing the last round did not complete */
export function vouch({ cluster, inventory, barrier }: Sources, failing: boolean): Vouch {
  if (failing) return { ok: false, why: 'the last round failed: see the log of the agent' }
  const part = cluster.parts().find(part => !part.synced && isNeeded(part.name))
  if (part) return { ok: false, why: `the watch of ${part.name} has not synced yet` }
  if (cluster.gateways().length === 0) {
    return { ok: false, why: 'no gateway is known: check apisix.gateways' }
  }
  if (inventory.readAt() === undefined && !barrier) {
    return { ok: false, why: `the holders have not been read yet: ${inventory.problem()}` }
  }
  return { ok: true }
}

/**
 * Whether the agent's list of entries is complete. A gateway that starts fetches this list, and then serves requests. If a pod's hook went
 * to another agent, only a live watch shows the pod's end to this one.
 *
 * @param looked the last round had a live watch of pods, and so used its latest events
 */
export function vouchForEntries(sources: Sources, failing: boolean, looked: boolean): Vouch {
  const holds = vouch(sources, failing)
  if (!holds.ok) return holds
  const pods = sources.cluster.parts().find(({ name, state }) => name === 'pods' && state !== 'live')
  if (pods) return { ok: false, why: `the watch of pods is ${pods.state}: pods may end unseen` }
  if (sources.barrier?.isKnown() === false)
    return { ok: false, why: 'this agent was away, and its watch of pods has not told since' }
  return looked ? holds : { ok: false, why: 'what the watch of pods has brought is not looked at yet' }
}
