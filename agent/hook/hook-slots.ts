import { refuse, type Refusal } from '../round/hold/refusal.ts'

/** The slot of a waiting hook. A second `leave` has no effect. */
export interface Slot {
  readonly ok: true
  /** Aborts when the agent releases all hooks (the end of its shutdown). */
  readonly signal: AbortSignal
  /** Counts the hook for its pod, once the pod is known. Returns a refusal if too many hooks of this pod wait already. */
  claim(uid: string): Refusal | undefined
  leave(): void
}

/** Limits how many hooks wait. When the agent stops, it empties the slots in three phases. */
export interface HookSlots {
  enter(): Slot | Refusal
  /** Phase 1 of a shutdown: no further hook is admitted. */
  close(): void
  /** Phase 2: resolves when the last hook has left; rejects when the signal aborts. */
  emptied(signal: AbortSignal): Promise<void>
  /** Phase 3: every remaining hook is broken off, so that it asks another agent. */
  releaseAll(): void
  readonly waiting: number
}

export const SHUTTING_DOWN = refuse(
  'shutting-down',
  'this agent is stopping and breaks off; another one answers'
)

export function createHookSlots(limits: {
  readonly maxHooks: number
  readonly maxHooksPerPod: number
}): HookSlots {
  const perPod = new Map<string, number>()
  const release = new AbortController()
  const onLeave = new Set<() => void>()
  let waiting = 0
  let open = true
  const isEmpty = () => waiting === 0

  return {
    enter() {
      if (!open) return SHUTTING_DOWN
      if (waiting >= limits.maxHooks) {
        return refuse('too-many-hooks', `${waiting} hooks are waiting already; add a replica`)
      }
      waiting += 1
      return slot()
    },
    close: () => void (open = false),
    async emptied(signal) {
      while (!isEmpty()) await nextLeave(signal)
    },
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
        for (const wake of onLeave) wake()
      }
    }
  }

  function nextLeave(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const abort = () => reject(signal.reason as Error)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    onLeave.add(resolve)
    return promise.finally(() => {
      onLeave.delete(resolve)
      signal.removeEventListener('abort', abort)
    })
  }
}
