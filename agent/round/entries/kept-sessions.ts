import { keepTime } from '../../rules/drain/budget.ts'
import type { Drains } from '../../rules/drain/drain.ts'
import type { Millis, PodUid } from '../../rules/drain/facts.ts'
import type { Memories } from '../gather/memory.ts'

/**
 * How long a pod without a held hook keeps its sessions, in ms from the start of its drain. Its hook may be on its way, or another agent
 * may hold it. If no agent gets the hook, nothing keeps the pod alive.
 */
const HOOK_COMES_MS = 10_000

/** The time for which a pod keeps its sessions, on the agent's clock. */
export interface Keeping {
  readonly from: Millis
  /** The end of the time that the pod asks for. The pod is not sealed before. */
  readonly until: Millis
  /** Until when this agent is sure that the sessions are kept. Another agent may name a later time. */
  readonly sureUntil: Millis
}

/**
 * The pods that keep their sessions now. Only a hook keeps a pod alive, so such a pod needs a held hook, or a hook that has not called this
 * agent yet. A pod whose seal has begun is left out, because a seal is never taken back.
 */
export function keptSessions(
  drains: Drains,
  memories: Pick<Memories, 'of'>,
  held: ReadonlySet<PodUid>,
  now: Millis,
  serverBehindMs: Millis
): ReadonlyMap<PodUid, Keeping> {
  const keeping = new Map<PodUid, Keeping>()
  for (const drain of drains.values()) {
    const time = drain.phase === 'draining' ? keepTime(drain, serverBehindMs) : undefined
    if (time === undefined || now >= time.until) continue
    const { from, until } = time
    const { hookAt, sealing, sealForced } = memories.of(drain.uid)
    const isHeld = held.has(drain.uid)
    const mayCome = hookAt === undefined && drain.pod.hook !== undefined
    if (sealing || sealForced || !(isHeld || mayCome)) continue
    const sureUntil = isHeld ? until : Math.min(until, from + HOOK_COMES_MS)
    keeping.set(drain.uid, { from, until, sureUntil })
  }
  return keeping
}
