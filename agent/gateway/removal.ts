import pRetry from 'p-retry'

import type { Clock } from '../clock.ts'
import { isConflict, isGone, isRefused, isTransient } from '../errors.ts'
import type { Holder, HolderKey, Resource } from '../plan/holder.ts'
import type { NodeKey, PodUid } from '../drain/facts.ts'
import type { AdminApi, AdminObject } from './admin-api.ts'
import { writeFor } from './edit.ts'
import { holdersOf } from './holders.ts'
import type { Inventory } from './inventory.ts'
import { settle, type Outcome, type Removal } from './settle.ts'

export interface RemovalTools {
  readonly admin: Pick<AdminApi, 'get' | 'patch' | 'put'>
  readonly inventory: Pick<Inventory, 'learn' | 'forget'>
  readonly clock: Clock
  readonly expected: (holder: Holder) => readonly NodeKey[]
  /** Asked again right before every write. */
  readonly stillEnding: (uid: PodUid, node: NodeKey) => boolean | Promise<boolean>
  readonly giveUpMs: number
  readonly signal: AbortSignal
}

export interface Target {
  readonly resource: Resource
  readonly id: string
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
 * @returns what became of each node, and how many were written out
 * @throws CodedError when it could not be done within `giveUpMs`
 */
export async function carryOut(
  tools: RemovalTools,
  target: Target,
  removal: Removal
): Promise<{ readonly outcomes: readonly Outcome[]; readonly removed: number }> {
  let refusals = 0
  return pRetry(() => attempt(tools, target, removal), {
    retries: Infinity,
    minTimeout: 0,
    maxRetryTime: tools.giveUpMs,
    signal: tools.signal,
    onFailedAttempt: async ({ error, attemptNumber }) => {
      if (isRefused(error)) refusals++
      const pause =
        isConflict(error) || isRefused(error) ? CONFLICT_MS : isTransient(error) ? slower(attemptNumber) : 0
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
export async function lookAt(
  tools: RemovalTools,
  target: Target,
  removal: Pick<Removal, 'wanted'>
): Promise<readonly Outcome[]> {
  const object = await read(tools, target)
  const { outcomes } = settle(
    { ...removal, sent: new Map() },
    object ? holdersOf(object) : [],
    tools.expected
  )
  // What is to be kept may still change: it is decided by who writes.
  return outcomes.filter(({ state }) => state === 'removed')
}

const slower = (attempt: number): number => Math.min(TRANSIENT_MS.longest, TRANSIENT_MS.first * 2 ** attempt)

async function attempt(tools: RemovalTools, target: Target, removal: Removal) {
  let removed = 0
  for (let writes = 0; ; writes++) {
    const object = await read(tools, target)
    const found = object ? holdersOf(object) : []
    await dropWhatStays(removal, found, tools.stillEnding)
    const { edits, outcomes } = settle(removal, found, tools.expected)
    if (!object || edits.length === 0 || writes === WRITES) return { outcomes, removed }
    for (const { holder, remove } of edits)
      removal.sent.set(holder.key, { before: holder, removed: remove, accepted: false })
    await write(tools, object, edits)
    for (const { holder, remove } of edits) {
      accept(removal, holder.key)
      removed += remove.size
    }
  }
}

/** Only nodes that are listed are asked about: one that is not any more is the removal itself, to be reported as such. */
async function dropWhatStays(
  { wanted }: Removal,
  found: readonly Holder[],
  stillEnding: RemovalTools['stillEnding']
): Promise<void> {
  for (const { key, nodes } of found) {
    for (const node of nodes) {
      const uid = wanted.get(key)?.get(node.key)
      if (uid !== undefined && !(await stillEnding(uid, node.key))) wanted.get(key)?.delete(node.key)
    }
  }
}

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
