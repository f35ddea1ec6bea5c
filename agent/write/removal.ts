import pRetry from 'p-retry'

import type { Clock } from '../base/clock.ts'
import { isConflict, isGone, isRefused, isTransient } from '../base/errors.ts'
import type { Holder, HolderKey, HolderNode, Resource } from '../plan/holder.ts'
import type { Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { AdminApi, AdminObject } from '../apisix/admin-api.ts'
import { writeFor } from './edit.ts'
import { holdersOf } from '../apisix/holders.ts'
import type { Inventory } from '../inventory/inventory.ts'
import { reconcile, type Outcome, type Removal } from './reconcile.ts'
import { withWishes, type Edit, type Wishes } from './wish.ts'
import { doubled } from '../drain/times.ts'

export interface RemovalTools {
  readonly admin: Pick<AdminApi, 'get' | 'patch' | 'put'>
  readonly inventory: Pick<Inventory, 'learn' | 'forget'>
  readonly clock: Clock
  /** Asked before every read that a write rests on. `undefined`: that cannot be told now, and the node is left alone for now. */
  readonly stillEnding: (uid: PodUid, node: NodeKey) => MayBe<boolean | undefined>
  /** The same by what is known here, right before the write: it may not wait for anything. */
  readonly isEnding: (uid: PodUid, node: NodeKey) => boolean
  /** Whether this process did not run for a while since then: what was asked before that is no answer. */
  readonly wasAwaySince: (at: Millis) => boolean
  /** Asks whatever `wishes` has to know, before the object is read. */
  readonly prepare: (target: Target) => Promise<unknown>
  /** What is wished of this object, as just read (`undefined`: it does not exist), beside what is drained. */
  readonly wishes: (target: Target, found: readonly Holder[] | undefined) => Wishes
  /** A drained node has left, or (no answer came) may have left, by our hand: as it was. */
  readonly taken: (taken: Taken) => void
  readonly wrote: (written: Written) => void
  readonly giveUpMs: number
  readonly signal: AbortSignal
}

/** A write, answered or not. Unanswered: it may still take effect. */
export interface Written {
  readonly target: Target
  readonly edits: readonly Edit[]
  readonly answered: boolean
}

type MayBe<T> = T | Promise<T>

export interface Target {
  readonly resource: Resource
  readonly id: string
}

export interface Taken {
  readonly target: Target
  readonly holder: Holder
  readonly node: HolderNode
  readonly uid: PodUid
}

/** What a removal has come to. `wished`: nodes that were put, changed or removed because that was wished. */
interface Result {
  readonly outcomes: readonly Outcome[]
  readonly removed: number
  readonly wished: number
  /** Everything that was wished is as it should be, in what was read last. */
  readonly content: boolean
}

/** Writes in one attempt: the removal, and repairs of what came of it. */
const WRITES = 4
/** Refused (400) means that the object is not as we read it a moment ago; more than this, and it is something else. */
const REFUSALS = 3
/** After "value changed": 50 writers at once were all through in 253 ms with this (apisix-measured a). */
const CONFLICT_MS = 20
const TRANSIENT_MS = { first: 100, longest: 2000 }

/**
 * Takes nodes out of one object and sees that they are out. Every attempt begins with a read, so it does not matter
 * whether a write that failed was applied.
 *
 * @throws CodedError when it could not be done within `giveUpMs`
 */
export async function carryOut(tools: RemovalTools, target: Target, removal: Removal): Promise<Result> {
  let refusals = 0
  return pRetry(() => attempt(tools, target, removal), {
    retries: Infinity,
    minTimeout: 0,
    maxRetryTime: tools.giveUpMs,
    signal: tools.signal,
    onFailedAttempt: async ({ error, attemptNumber }) => {
      if (isRefused(error)) refusals++
      const pause =
        isConflict(error) || isRefused(error)
          ? CONFLICT_MS
          : isTransient(error)
            ? doubled(TRANSIENT_MS, attemptNumber)
            : 0
      if (pause > 0) await tools.clock.sleep(Math.random() * pause, tools.signal)
    },
    shouldRetry: ({ error }) =>
      isConflict(error) || isTransient(error) || (isRefused(error) && refusals < REFUSALS)
  })
}

/**
 * Reads one object, and says which of the nodes are out of it: what another agent's write has come to.
 *
 * @throws CodedError when it could not be read
 */
export async function readBack(
  tools: RemovalTools,
  target: Target,
  removal: Pick<Removal, 'wanted'>
): Promise<readonly Outcome[]> {
  const object = await read(tools, target)
  const { outcomes } = reconcile({ ...removal, sent: new Map() }, object ? holdersOf(object) : [])
  // What is to be kept may still change: it is decided by who writes.
  return outcomes.filter(({ state }) => state === 'removed')
}

/**
 * The order: ask Kubernetes, read the object, write at once. An array is written whole and the Admin API has no precondition, so a node
 * that another writer adds between read and write is lost (docs/decisions/0024).
 */
async function attempt(tools: RemovalTools, target: Target, removal: Removal): Promise<Result> {
  const done = { removed: 0, wished: 0 }
  for (let writes = 0; ; writes++) {
    if (writes === 0) removal.more()
    const askedAt = tools.clock.now()
    const [answers] = await Promise.all([ask(removal, tools.stillEnding), tools.prepare(target)])
    const object = await read(tools, target)
    if (tools.wasAwaySince(askedAt)) continue
    const found = object ? holdersOf(object) : []
    const unsure = dropWhatStays(removal, found, answers, tools.isEnding)
    const { edits: drained, outcomes } = reconcile(removal, found)
    const { edits: wishes, create } = tools.wishes(target, object && found)
    const edits = withWishes(drained, wishes, found)
    const nothing = edits.length === 0 && (object !== undefined || create === undefined)
    if (nothing || writes === WRITES) {
      return { outcomes: [...outcomes, ...unsure], ...done, content: nothing }
    }
    if (!object) {
      await tools.admin.put(target.resource, target.id, create, tools.signal)
      done.wished++
      continue
    }
    const taken = begun(removal, target, drained)
    try {
      await write(tools, object, edits)
    } catch (error) {
      // Without an answer the write may have been applied.
      if (isTransient(error)) {
        taken.forEach(tools.taken)
        tools.wrote({ target, edits, answered: false })
      }
      throw error
    }
    taken.forEach(tools.taken)
    tools.wrote({ target, edits, answered: true })
    for (const { holder, remove } of drained) {
      accept(removal, holder.key)
      done.removed += remove.size
    }
    done.wished += sizeOf(edits) - sizeOf(drained)
  }
}

const sizeOf = (edits: readonly Edit[]): number =>
  edits.reduce((sum, { add, remove }) => sum + add.length + remove.size, 0)

/** Notes what is about to be written, and says which nodes will then have been taken out, as they were. */
function begun(removal: Removal, target: Target, edits: readonly Edit[]): readonly Taken[] {
  return edits.flatMap(({ holder, remove }) => {
    removal.sent.set(holder.key, { before: holder, removed: remove, accepted: false })
    const wanted = removal.wanted.get(holder.key)
    return holder.nodes.flatMap(node => {
      const uid = remove.has(node.key) ? wanted?.get(node.key) : undefined
      return uid === undefined ? [] : [{ target, holder, node, uid }]
    })
  })
}

type Answers = ReadonlyMap<string, boolean | undefined>

const nameOf = (holder: HolderKey, node: NodeKey): string => `${holder} ${node}`

/** All at once, so that no answer is old when the write is made. */
async function ask({ wanted }: Removal, stillEnding: RemovalTools['stillEnding']): Promise<Answers> {
  const all = [...wanted].flatMap(([holder, nodes]) =>
    [...nodes].map(async ([node, uid]) => [nameOf(holder, node), await stillEnding(uid, node)] as const)
  )
  return new Map(await Promise.all(all))
}

/**
 * Only of nodes that are listed: one that is not any more is the removal itself, to be reported as such. One that came to be
 * wanted while the question was out waits for the next.
 *
 * @returns those that Kubernetes did not answer for; they are retried after a pause
 */
function dropWhatStays(
  { wanted }: Removal,
  found: readonly Holder[],
  answers: Answers,
  isEnding: RemovalTools['isEnding']
): readonly Outcome[] {
  const unsure: Outcome[] = []
  for (const { key: holder, nodes } of found) {
    for (const { key: node } of nodes) {
      const uid = wanted.get(holder)?.get(node)
      if (uid === undefined) continue
      const answer = answers.get(nameOf(holder, node))
      if (answer === true && isEnding(uid, node)) continue
      wanted.get(holder)?.delete(node)
      if (answer === undefined) unsure.push({ holder, node, uid, state: 'failed', why: UNSURE })
    }
  }
  return unsure
}

const UNSURE = 'left alone: Kubernetes did not confirm that the address is still that of a pod that ends'

function accept(removal: Removal, key: HolderKey): void {
  const sent = removal.sent.get(key)
  if (sent) sent.accepted = true
}

async function read({ admin, inventory, signal }: RemovalTools, { resource, id }: Target) {
  try {
    const object = await admin.get(resource, id, signal)
    inventory.learn(object)
    return object
  } catch (error) {
    if (!isGone(error)) throw error
    inventory.forget(resource, id)
    return undefined
  }
}

async function write(
  { admin, signal }: RemovalTools,
  object: AdminObject,
  edits: Parameters<typeof writeFor>[1]
): Promise<void> {
  const { method, body } = writeFor(object, edits)
  try {
    await admin[method](object.resource, object.id, body, signal)
  } catch (error) {
    // Deleted since we read it: the next read says so.
    if (!isGone(error)) throw error
  }
}
