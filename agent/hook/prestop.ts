import { randomUUID } from 'node:crypto'
import { createWakeup, type Clock } from '../base/clock.ts'
import { inTime, orAborted } from '../kubernetes/transport/connection.ts'
import type { Ack, Hook } from '../rules/drain/drain.ts'
import type { Log, Rare } from '../base/log.ts'
import type { Metrics } from '../report/metrics/metrics.ts'
import { identify, parseQuery } from './identify.ts'
import { endOfGrace, reserveOf } from '../rules/drain/answer.ts'
import { fieldsOf } from '../base/read.ts'
import { annotationsOf } from '../kubernetes/facts/pod-fact.ts'
import {
  refusalResponse,
  refuse,
  reply,
  type HoldRequest,
  type Holds,
  type Refusal
} from '../round/hold/hooks.ts'
import { readOptions } from '../rules/drain/annotations.ts'
import type { Millis } from '../rules/drain/facts.ts'

export interface PrestopParts {
  readonly holds: Holds
  /** Whether a namespace says `apisix-drain.io/only-apisix`, which then counts as on each of its pods. */
  readonly isOnlyApisix: (namespace: string) => Promise<boolean>
  readonly slots: HookSlots
  readonly clock: Clock
  readonly log: Log
  /** For the line `hook refused`, which any caller can cause: an operator may have to change something. */
  readonly rare: Rare
  readonly metrics: Pick<Metrics, 'hookRefusals' | 'hookAbandoned' | 'hookWaiting'>
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
  const { holds, clock, log } = parts
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
  if ('ok' in answer) {
    const facts = { namespace: pod.namespace, pod: pod.name, uid: pod.uid, hook: hook.id }
    log.warn({ ...facts, error: answer.error }, 'hook let go without an answer')
  }
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
  const ms = graceEnds - reserveOf(pod, { reserveMs }) / 2 - clock.now()
  let late: AbortSignal | undefined
  try {
    return await inTime({ clock, ms }, over => {
      late = over
      const either = AbortSignal.any([signal, over])
      return orAborted(holds.hold(request, either), either)
    })
  } catch (err) {
    if (signal.aborted || !late?.aborted) throw err
    return refuse('no-answer', 'the agent did not come to an answer before the deadline of the pod')
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

/** How long an answer is used, in ms. */
const FRESH_MS = 5000

/** Asks whether a namespace says of all its pods that their requests come through APISIX only. Without an answer: no. */
export function createOnlyApisix(
  call: (
    method: string,
    path: string,
    body: undefined,
    signal: AbortSignal
  ) => Promise<{ readonly json: unknown }>,
  clock: Clock
): (namespace: string) => Promise<boolean> {
  const known = new Map<string, { readonly until: Millis; readonly answer: Promise<boolean> }>()
  const ask = async (namespace: string): Promise<boolean> => {
    const path = `/api/v1/namespaces/${namespace}`
    const { json } = await inTime({ clock }, signal => call('GET', path, undefined, signal))
    return readOptions(annotationsOf(fieldsOf(fieldsOf(json)['metadata'])['annotations'])).onlyApisix
  }
  return namespace => {
    const now = clock.now()
    const last = known.get(namespace)
    if (last && now < last.until) return last.answer
    const answer = ask(namespace).catch(() => false)
    known.set(namespace, { until: now + FRESH_MS, answer })
    return answer
  }
}

/** The slot of a waiting hook. A second `leave` has no effect. */
interface Slot {
  readonly ok: true
  /** Aborts when the agent releases all hooks (the end of its shutdown). */
  readonly signal: AbortSignal
  /** Counts the hook for its pod, once the pod is known. Returns a refusal if too many hooks of this pod wait already. */
  claim(uid: string): Refusal | undefined
  leave(): void
}

const SHUTTING_DOWN = refuse('shutting-down', 'this agent is stopping and breaks off; another one answers')

export type HookSlots = ReturnType<typeof createHookSlots>

/** Limits how many hooks wait. When the agent stops, it empties the slots in three phases. */
export function createHookSlots(limits: { readonly maxHooks: number; readonly maxHooksPerPod: number }) {
  const perPod = new Map<string, number>()
  const release = new AbortController()
  const leaving = createWakeup()
  let waiting = 0
  let open = true

  return {
    enter(): Slot | Refusal {
      if (!open) return SHUTTING_DOWN
      if (waiting >= limits.maxHooks) {
        return refuse('too-many-hooks', `${waiting} hooks are waiting already; add a replica`)
      }
      waiting += 1
      return slot()
    },
    /** Phase 1 of a shutdown: no further hook is admitted. */
    close: () => void (open = false),
    isOpen: () => open,
    /** Phase 2: resolves when the last hook has left; rejects when the signal aborts. */
    async emptied(signal: AbortSignal) {
      const isEmpty = () => waiting === 0
      while (!isEmpty()) await orAborted(leaving.woken(), signal)
    },
    /** Phase 3: every remaining hook is broken off, so that it asks another agent. */
    releaseAll() {
      open = false
      release.abort(SHUTTING_DOWN)
    },
    get waiting() {
      return waiting
    }
  }

  function slot(): Slot {
    let claimed: string | undefined
    let left = false
    return {
      ok: true,
      signal: release.signal,
      claim(uid) {
        const others = perPod.get(uid) ?? 0
        if (others >= limits.maxHooksPerPod) {
          return refuse(
            'too-many-hooks-of-pod',
            `${others} hooks of this pod are waiting already; one per container is enough`
          )
        }
        claimed = uid
        perPod.set(uid, others + 1)
        return undefined
      },
      leave() {
        if (left) return
        left = true
        waiting -= 1
        if (claimed !== undefined) {
          const others = (perPod.get(claimed) ?? 1) - 1
          if (others > 0) perPod.set(claimed, others)
          else perPod.delete(claimed)
        }
        leaving.wake()
      }
    }
  }
}
