import type { Drain } from '../rules/drain/drain.ts'
import { isOver } from '../rules/drain/eligible.ts'
import type { Millis } from '../rules/drain/facts.ts'
import type { Fates } from './entries/desired.ts'
import { areLive, isNeeded, type Part } from '../kubernetes/reflect/watch-status.ts'
import type { Log } from '../base/log.ts'
import { gatewayEndsAt } from '../rules/proof/observed.ts'
import type { MissingPart, Vouch } from './hold/hooks.ts'
import type { Sources } from './gather/sources.ts'

/**
 * Whether the agent may still assume that an address belongs to the old pod.
 *
 * A new pod may get an ended pod's address within a second, and must then get requests at once. The watch of pods shows which pod has the
 * address. A held hook proves that the pod's containers still run and have it.
 *
 * Without its watch the agent cannot know which pod has an address. So it removes no entry: requests would go to an address without a pod.
 * It puts and renews none either: another agent that sees may have removed the entry. An entry lasts long enough for such a time.
 *
 * If only some namespaces are watched, the address may belong to a pod of another namespace once the pod is gone or has finished, and no
 * watch shows that. Then the entry is removed when the pod's grace is over.
 */
export function createAddressOwnership(someNamespacesOnly: boolean, serverBehindMs: () => number) {
  let isLive = false
  const watch = createBlindness()
  const hasLeft = ({ phase, pod }: Drain) => someNamespacesOnly && (phase === 'gone' || isOver(pod))
  /** Whether the pod's containers may still serve requests in flight. */
  const mayStillServe = ({ pod, since }: Drain, now: Millis) =>
    !isOver(pod) &&
    now < (pod.deletionAt === undefined ? since + pod.graceMs : pod.deletionAt + serverBehindMs())
  return {
    /** Called once per round. `live`: whether the watch of pods is live. */
    look(live: boolean, now: Millis) {
      isLive = live
      watch.look(live, now)
    },
    /** Whether the watch was live at the last `look`. */
    isLive: () => isLive,
    /** Whether the addresses of this drain still belong to its pod, as far as the agent can know. */
    isSure: (drain: Drain, now: Millis) =>
      !hasLeft(drain) && (drain.phase === 'draining' || !watch.isBlind(now)),
    ofDrain(drain: Drain, isHeld: boolean, now: Millis): ReturnType<Fates['ofDrain']> {
      if (hasLeft(drain) && !mayStillServe(drain, now)) return 'drop'
      return isLive || isHeld ? 'put' : 'keep'
    },
    ofGone: (): ReturnType<Fates['ofGone']> => (someNamespacesOnly ? 'drop' : isLive ? 'put' : 'keep')
  }
}

/** How long a watch may be down before its knowledge is too old, in ms. */
export const BLIND_MS = 10_000
/** The same for the list of gateways. A gateway that has fetched waits for this time before it is ready (fetch.lua of the plugin). */
const UNSEEN_MS = 2000

/** Whether a watch has been down for too long. `look` is called once per round. */
export function createBlindness(afterMs = BLIND_MS) {
  let since: Millis | undefined
  return {
    look(live: boolean, now: Millis) {
      since = live ? undefined : (since ?? now)
    },
    isBlind: (now: Millis) => since !== undefined && now - since > afterMs
  }
}

/**
 * Returns a function for each round: whether the list of gateways may lack a new gateway, because their watch alone has been down for too
 * long. If the watch of pods is down too, the API server cannot be reached. Then the list stays in use, because a gateway needs that server
 * to join.
 */
export function createOldGateways(parts: () => readonly Part[]): (now: Millis) => boolean {
  const watch = createBlindness(UNSEEN_MS)
  return now => {
    watch.look(areLive(parts(), ['gateways']), now)
    return watch.isBlind(now) && areLive(parts(), ['pods'])
  }
}

/** What the agent needs before it holds hooks, and lacks: a complete watch, a gateway, and without a barrier a listing of the holders. */
export function missingParts({ cluster, inventory, barrier }: Sources): readonly MissingPart[] {
  const lacking = cluster.parts().filter(({ name, synced }) => !synced && isNeeded(name))
  const missing = lacking.map(({ name, problem }) => ({
    part: `watch:${name}`,
    why: problem || 'the first list is not complete yet'
  }))
  if (cluster.gateways().length === 0)
    missing.push({ part: 'gateways', why: 'no gateway is known: check apisix.gateways' })
  if (inventory.readAt() === undefined && !barrier)
    missing.push({ part: 'inventory', why: inventory.problem() || 'the holders have not been read yet' })
  return missing
}

/** Whether the agent may hold hooks now; if not, the reason. @param failing the last round did not complete */
export function vouch(sources: Sources, failing: boolean): Vouch {
  if (failing) return { ok: false, why: 'the last round failed: see the log of the agent' }
  const [missing] = missingParts(sources)
  return missing ? { ok: false, why: `${missing.part}: ${missing.why}` } : { ok: true }
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
    return { ok: false, why: 'this agent was away, and its watch of pods has reported nothing since' }
  return looked ? holds : { ok: false, why: 'what the watch of pods has brought is not looked at yet' }
}

/** Ends every gateway that is not Ready, or vanished, once it can route no request. Then passes the rest on to `gateways`. */
export function listGateways(
  { cluster, gateways }: Pick<Sources, 'cluster' | 'gateways'>,
  now: Millis,
  log: Log
): void {
  for (const gateway of cluster.gateways()) {
    if (gatewayEndsAt(gateway, gateways.heard(gateway.id)) > now) continue
    log.info({ gateway: gateway.name }, 'a gateway that is not Ready can route no request any more')
    cluster.gatewayEnded(gateway.id)
  }
  gateways.list(cluster.gateways())
}
