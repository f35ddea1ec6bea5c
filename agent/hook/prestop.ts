import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { isOwnLimit, type Ack } from '../rules/drain/ack.ts'
import type { Hook } from '../rules/drain/drain.ts'
import type { Log, Rare } from '../base/log.ts'
import type { Metrics } from '../report/metrics/metrics.ts'
import { SHUTTING_DOWN, type HookSlots, type Slot } from './hook-slots.ts'
import type { HoldRequest, Holds } from '../round/hold/holds.ts'
import { identify } from './identify.ts'
import { parseQuery } from './query.ts'
import { refusalResponse, refuse, type Refusal } from '../round/hold/refusal.ts'
import { reply, type createFirsts } from '../round/hold/reply.ts'
import { endOfGrace, reserveOf } from '../rules/drain/budget.ts'

export interface PrestopParts {
  readonly holds: Holds
  /** Whether a namespace says `apisix-drain.io/only-apisix`, which then counts as on each of its pods. */
  readonly isOnlyApisix: (namespace: string) => Promise<boolean>
  readonly slots: HookSlots
  readonly clock: Clock
  readonly log: Log
  /** For the line `hook refused`, which any caller can cause: an operator may have to change something. */
  readonly rare: Rare
  /** See `createFirsts`. */
  readonly isFirst: ReturnType<typeof createFirsts>
  readonly metrics: Pick<
    Metrics,
    'hookAnswers' | 'hookRefusals' | 'hookAbandoned' | 'hookWaiting' | 'hookDuration'
  >
  /** `drain.reserve`. */
  readonly reserveMs: number
}

interface PrestopCall {
  readonly query: URLSearchParams
  /** A page or a library may be made to send a GET, so only a POST shows that a container stops. */
  readonly isPost: boolean
  /** Normalised. */
  readonly address: string
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal
  /** Breaks off the connection. A caller takes any HTTP answer as final, so this makes it ask another agent. */
  hangUp(): void
}

/** nginx's status for "the client closed the request". No client reads it, but the server has to write a status. */
const CLIENT_GONE = 499

/** Holds a hook until there is an answer, its pod's deadline is near, its caller disconnects, or the agent stops. */
export async function prestop(parts: PrestopParts, call: PrestopCall): Promise<Response> {
  const { slots, metrics, log } = parts
  const slot = slots.enter()
  if (!slot.ok) return refused(parts, slot, call)
  metrics.hookWaiting.inc()
  try {
    const answer = await answerHook(parts, call, slot)
    if ('ok' in answer) return refused(parts, answer, call)
    const { status, ...body } = answer
    return reply(body, status)
  } catch (err) {
    if (call.signal.aborted) {
      metrics.hookAbandoned.inc()
      return new Response(null, { status: CLIENT_GONE })
    }
    log.error({ err }, 'hook failed')
    return refused(parts, refuse('no-answer', 'the agent failed to answer; run the fallback'), call)
  } finally {
    metrics.hookWaiting.dec()
    slot.leave()
  }
}

async function answerHook(parts: PrestopParts, call: PrestopCall, slot: Slot): Promise<Ack | Refusal> {
  const { holds, clock, metrics, log } = parts
  const receivedAt = clock.now()
  const query = parseQuery(call.query)
  if (!query.ok) return query
  const vouch = holds.canVouch()
  if (!vouch.ok) return refuse('cannot-vouch', vouch.why)

  const letGo = AbortSignal.any([call.signal, slot.signal])
  const caller = { address: call.address, named: query.named, uid: query.uid }
  const identity = await unlessStopping(slot, () => identify(caller, holds, letGo))
  if (!identity.ok) return identity
  const { pod } = identity
  const tooMany = slot.claim(pod.uid)
  if (tooMany) return tooMany

  const { atLeastMs } = query.times
  const isBound = atLeastMs !== undefined && !(await parts.isOnlyApisix(pod.namespace))
  const times = { ...query.times, atLeastMs: isBound ? atLeastMs : undefined }
  const { container } = query
  const hook: Hook = { id: randomUUID(), uid: pod.uid, receivedAt, container, ...times }
  const isOwn = call.isPost && !pod.hostNetwork && pod.ips.includes(call.address)
  const answer = await unlessStopping(slot, () => holdInTime(parts, { hook, pod, isOwn }, letGo))
  const facts = { namespace: pod.namespace, pod: pod.name, uid: pod.uid, hook: hook.id }
  if ('ok' in answer) {
    log.warn({ ...facts, error: answer.error }, 'hook let go without an answer')
    return answer
  }
  const { result, evidence, elapsedMs, status } = answer
  if (!parts.isFirst(hook, answer)) return answer
  log.info({ ...facts, result, evidence, elapsedMs, status }, 'hook answered')
  if (isOwnLimit(hook, answer)) return answer
  metrics.hookAnswers.inc({ result, evidence })
  metrics.hookDuration.observe({ result }, (clock.now() - receivedAt) / 1000)
  return answer
}

/**
 * The safety net for "every hook is answered before its deadline": if the rounds miss the deadline, the hook is refused half the reserve
 * later. The container then still has time to stop in order.
 */
async function holdInTime(
  { holds, clock, reserveMs }: PrestopParts,
  request: HoldRequest,
  signal: AbortSignal
): Promise<Ack | Refusal> {
  const { hook, pod } = request
  const graceEnds = endOfGrace(pod, hook.receivedAt, holds.serverBehindMs())
  const late = new AbortController()
  const { promise: overdue, resolve, reject } = Promise.withResolvers<Refusal>()
  const abort = () => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  const cancel = clock.alarm(graceEnds - reserveOf(pod, { reserveMs }) / 2, () => {
    resolve(refuse('no-answer', 'the agent did not come to an answer before the deadline of the pod'))
    late.abort(new Error('the deadline of the pod is over'))
  })
  try {
    const held = holds.hold(request, AbortSignal.any([signal, late.signal]))
    return await Promise.race([overdue, held])
  } finally {
    cancel()
    signal.removeEventListener('abort', abort)
  }
}

/** Returns the result of `run`. If the agent is stopping, an abort becomes a refusal instead of an error. */
async function unlessStopping<T>(slot: Slot, run: () => Promise<T>): Promise<T | Refusal> {
  try {
    return await run()
  } catch (err) {
    if (slot.signal.aborted) return SHUTTING_DOWN
    throw err
  }
}

function refused(
  { metrics, log, rare }: Pick<PrestopParts, 'metrics' | 'log' | 'rare'>,
  refusal: Refusal,
  call: PrestopCall
): Response {
  const { error, why } = refusal
  metrics.hookRefusals.inc({ error })
  const leftOut = rare.next()
  if (leftOut !== undefined) log.warn({ address: call.address, error, why, leftOut }, 'hook refused')
  if (error === 'shutting-down') call.hangUp()
  return refusalResponse(refusal)
}
