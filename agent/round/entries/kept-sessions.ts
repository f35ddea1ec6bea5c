import { keepTime } from '../../rules/drain/budget.ts'
import type { Drains } from '../../rules/drain/drain.ts'
import type { Millis, PodUid } from '../../rules/drain/facts.ts'
import type { Memories } from '../gather/memory.ts'

/**
 * How long after the beginning of its drain a pod keeps its sessions without a held hook, in ms. Its hook may be on its way, or another
 * agent may hold it. If no agent gets it, the pod ends.
 */
const HOOK_COMES_MS = 10_000

/** The time for which a pod keeps its sessions, on the agent's clock. */
export interface Keeping {
  readonly from: Millis
  /** The end of the time that the pod asks for. It is not sealed before. */
  readonly until: Millis
  /** The time of which this agent is sure: another agent may name a later one. */
  readonly sureUntil: Millis
}

/**
 * The pods that keep their sessions now. Only a hook keeps a pod alive, so they need one: one that is held, or one that the pod has and
 * that has not called here yet. A seal is never taken back.
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
