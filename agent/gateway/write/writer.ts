import PQueue from 'p-queue'
import type { Logger } from 'pino'
import type { NodeKey, PodUid } from '../../rules/drain/facts.ts'
import { objectOf, type HolderKey } from '../../rules/plan/holder.ts'
import { isDenied } from '../../base/errors.ts'
import { createListeners } from '../../base/clock.ts'
import type { Change, Kept } from '../../rules/plan/plan.ts'
import { createObjectQueue, targetOf, type ObjectQueue } from './object-queue.ts'
import { carryOut, type RemovalTools, type Target } from './removal.ts'
import type { Outcome, Wanted } from './edit.ts'

/** The state of one removal. The names are those of `HolderReport`. */
interface WriteStatus {
  readonly state: 'writing' | 'removed' | 'kept-last' | 'failed'
  /** A message for an operator; empty if there is nothing to report. */
  readonly why: string
}

type Place = Pick<Outcome, 'holder' | 'node' | 'uid'>

/** The tools of a removal that change nothing if they are left out. */
type Optional = 'stillEnding' | 'wasAwaySince' | 'prepare' | 'wishes'

export interface WriterOptions
  extends Omit<RemovalTools, 'signal' | Optional>, Partial<Pick<RemovalTools, Optional>> {
  readonly log: Logger
}

/** Objects written at the same time. */
const CONCURRENCY = 8
/** After this many failures in a row, those of one object are reported: a conflict, or an outage of a few seconds, is over by then. */
const TOLD_AFTER = 7

export type Writer = ReturnType<typeof createWriter>

/** Carries out removals and wishes. No part waits for it; the results are in `status`. */
export function createWriter(options: WriterOptions) {
  const { clock, log } = options
  const queues = new Map<string, ObjectQueue>()
  const working = new Map<ObjectQueue, Promise<void>>()
  /** The state of each removal of a pod, until its drain is over. */
  const statuses = new Map<PodUid, Map<string, WriteStatus>>()
  const listeners = createListeners()
  const ended = new AbortController()
  const gate = new PQueue({ concurrency: CONCURRENCY })
  const tools: RemovalTools = {
    stillEnding: () => true,
    wasAwaySince: () => false,
    prepare: () => Promise.resolve(),
    wishes: () => [],
    ...options,
    signal: ended.signal
  }

  const statusOf = (holder: HolderKey, node: NodeKey, uid: PodUid): WriteStatus | undefined =>
    statuses.get(uid)?.get(`${holder} ${node}`)
  const note = ({ holder, node, uid, state, why }: WriteStatus & Place): void => {
    const known = statuses.get(uid) ?? new Map<string, WriteStatus>()
    statuses.set(uid, known.set(`${holder} ${node}`, { state, why }))
  }

  const writeOnce = async (queue: ObjectQueue): Promise<void> => {
    const wanted = queue.take()
    const { resource, id } = queue.target
    try {
      const { outcomes, removed, wished, content } = await carryOut(tools, queue.target, wanted)
      outcomes.forEach(note)
      const progress = outcomes.some(o => o.state === 'removed') || (content && outcomes.length === 0)
      queue.ended(clock.now(), { wrote: removed + wished > 0, progress })
      if (removed > 0) log.info({ resource, id, nodes: removed }, 'nodes removed')
      if (wished > 0) log.info({ resource, id, nodes: wished }, 'nodes put right')
    } catch (error) {
      const failures = queue.ended(clock.now(), { wrote: false, progress: false })
      // A wrong key fails every removal in the same way: `reportRefusals` logs it once for all parts.
      const isKey = isDenied(error)
      if (isKey || failures >= TOLD_AFTER) failed(wanted, (error as Error).message).forEach(note)
      if (!isKey && failures >= TOLD_AFTER) log.error({ err: error, resource, id }, 'removal failed')
    }
    listeners.notify()
  }

  const work = async (queue: ObjectQueue): Promise<void> => {
    // The rest of one round's changes goes into the same write.
    await Promise.resolve()
    while (queue.waiting && !ended.signal.aborted) {
      const pause = queue.readyAt() - clock.now()
      // Changes submitted meanwhile go into the same write.
      if (pause > 0) await clock.sleep(pause, ended.signal).catch(() => {})
      else await gate.add(() => writeOnce(queue))
    }
    working.delete(queue)
  }

  const queueOf = (target: Target): ObjectQueue => {
    const name = `${target.resource}/${target.id}`
    const queue = queues.get(name) ?? createObjectQueue(target)
    queues.set(name, queue)
    return queue
  }
  const begin = (queue: ObjectQueue): void => {
    if (!working.has(queue)) working.set(queue, work(queue))
  }

  return {
    /** Reads an object and applies its wishes (`RemovalTools.wishes`). Idempotent, like `submit`. */
    tend(target: Target) {
      if (ended.signal.aborted) return
      const queue = queueOf(target)
      if (queue.tend()) begin(queue)
    },
    /**
     * Idempotent: a change that waits or is under way is not queued again, so a plan may be submitted in every round. After a failure
     * the next try comes after a pause.
     */
    submit(change: Change) {
      if (ended.signal.aborted) return
      const queue = queueOf(targetOf(change))
      const fresh = change.nodes.filter(({ key, uid }) => queue.add(change.holder.key, key, uid))
      for (const { key, uid } of fresh) {
        const { state } = statusOf(change.holder.key, key, uid) ?? {}
        // A failure stays visible until a later try succeeds.
        if (state === 'failed') continue
        const { key: holder, owner, revision } = change.holder
        const why = state === 'removed' ? `put back: its owner is ${owner}` : ''
        if (why !== '') log.warn({ holder, node: key, owner, revision }, 'node put back')
        note({ holder, node: key, uid, state: 'writing', why })
      }
      if (fresh.length > 0) begin(queue)
    },
    status: statusOf,
    /** The plan keeps this node now: a removal that it asked for before is cancelled if it is not sent yet. */
    keep: ({ holder, node, uid }: Pick<Kept, 'holder' | 'node' | 'uid'>) =>
      queues.get(objectOf(holder))?.drop(uid, { holder, node }),
    /** The drain is over or undone: its unsent writes are cancelled, and its statuses are dropped. */
    forget(uid: PodUid) {
      for (const queue of queues.values()) queue.drop(uid)
      statuses.delete(uid)
    },
    /** Called when a submitted change has a result. Returns a function that unsubscribes. */
    onChange: (listener: () => void): (() => void) => listeners.add(listener),
    /** Resolves when nothing waits and nothing is under way. */
    async idle() {
      while (working.size > 0) await Promise.all(working.values())
    },
    /** Abandons all waiting and running writes. */
    async stop() {
      ended.abort()
      await Promise.all(working.values())
    }
  }
}

function failed(wanted: Wanted, why: string): Outcome[] {
  return [...wanted].flatMap(([holder, nodes]) =>
    [...nodes].map(([node, uid]) => ({ holder, node, uid, state: 'failed' as const, why }))
  )
}
