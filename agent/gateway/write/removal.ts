import type { Clock } from '../../base/clock.ts'
import { isGone } from '../../base/errors.ts'
import type { Holder, HolderKey, Resource } from '../../rules/plan/holder.ts'
import type { Millis, NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { AdminApi, AdminObject } from '../apisix/admin-api.ts'
import { writeFor, reconcile, type Outcome, type Wanted, withWishes, type Edit, type Wish } from './edit.ts'
import { holdersOf } from '../apisix/holders.ts'
import type { Inventory } from '../inventory/inventory.ts'

export interface RemovalTools {
  readonly admin: Pick<AdminApi, 'get' | 'patch' | 'put'>
  readonly inventory: Pick<Inventory, 'learn' | 'forget'>
  readonly clock: Clock
  /**
   * Whether the pod at this node still ends. Asked before every read for a write, because a change may have waited. `false`: the node stays
   * (the drain was undone, or a new pod has the address). `undefined`: not known, so the node stays for now.
   */
  readonly stillEnding: (uid: PodUid, node: NodeKey) => MayBe<boolean | undefined>
  /** Whether this process came back from an absence (start/start-sources.ts) after `at`. If so, earlier answers do not count. */
  readonly wasAwaySince: (at: Millis) => boolean
  /** Gets the facts that `wishes` needs, before the object is read. */
  readonly prepare: (target: Target) => Promise<unknown>
  /** The wishes for this object, besides the removals of drains. `found`: the holders of the object as just read. */
  readonly wishes: (target: Target, found: readonly Holder[]) => readonly Wish[]
  readonly signal: AbortSignal
}

type MayBe<T> = T | Promise<T>

export interface Target {
  readonly resource: Resource
  readonly id: string
}

/** The result of a removal. `wished`: how many nodes were added, changed or removed because of a wish. */
interface Result {
  readonly outcomes: readonly Outcome[]
  readonly removed: number
  readonly wished: number
  /** The last read shows every wish fulfilled. */
  readonly content: boolean
}

/**
 * Removes nodes from one object, and verifies that the object no longer lists them: ask Kubernetes, read, write, read back. Kubernetes is
 * asked first, and the object is read right before the write. An array is written as a whole, and the Admin API has no conditional writes.
 * So nodes that another writer adds between read and write are lost (docs/decisions/0024). It begins with a read, so after an error it can
 * be called again, whether the write was applied or not.
 *
 * @throws CodedError if a call of the Admin API failed
 */
export async function carryOut(tools: RemovalTools, target: Target, wanted: Wanted): Promise<Result> {
  const askedAt = tools.clock.now()
  const { answers, object } = await askThenRead(tools, target, wanted)
  if (tools.wasAwaySince(askedAt)) return carryOut(tools, target, wanted)
  const found = object ? holdersOf(object) : []
  const unsure = dropWhatStays(wanted, found, answers)
  const { edits: drained, outcomes } = reconcile(wanted, found)
  const edits = withWishes(drained, tools.wishes(target, found), found)
  if (!object || edits.length === 0)
    return { outcomes: [...outcomes, ...unsure], removed: 0, wished: 0, content: edits.length === 0 }
  await write(tools, object, edits)
  const after = await read(tools, target)
  const left = after ? holdersOf(after) : []
  const now = reconcile(wanted, left)
  const back = now.edits.flatMap(({ holder, remove }) => putBack(wanted, holder, remove))
  const removed = drained.reduce((sum, { remove }) => sum + remove.size, 0)
  return {
    outcomes: [...now.outcomes, ...back, ...unsure],
    removed,
    wished: sizeOf(edits) - removed,
    content: withWishes([], tools.wishes(target, left), left).length === 0
  }
}

/** Asks Kubernetes, then reads the object. In this order, the read shows the writes that others made while Kubernetes was asked. */
async function askThenRead(tools: RemovalTools, target: Target, wanted: Wanted) {
  const [answers] = await Promise.all([ask(wanted, tools.stillEnding), tools.prepare(target)])
  return { answers, object: await read(tools, target) }
}

/** What is listed again in the read-back of a write that removed it. */
const putBack = (wanted: Wanted, holder: Holder, nodes: ReadonlySet<NodeKey>): readonly Outcome[] =>
  [...(wanted.get(holder.key) ?? [])]
    .filter(([node]) => nodes.has(node))
    .map(([node, uid]) => ({
      holder: holder.key,
      node,
      uid,
      state: 'failed',
      why: `put back at once; its owner is ${holder.owner}`
    }))

const sizeOf = (edits: readonly Edit[]): number =>
  edits.reduce((sum, { add, remove }) => sum + add.length + remove.size, 0)

type Answers = ReadonlyMap<string, boolean | undefined>

const nameOf = (holder: HolderKey, node: NodeKey): string => `${holder} ${node}`

/** Asks all questions at once, so that no answer is old when the write begins. */
async function ask(wanted: Wanted, stillEnding: RemovalTools['stillEnding']): Promise<Answers> {
  const all = [...wanted].flatMap(([holder, nodes]) =>
    [...nodes].map(async ([node, uid]) => [nameOf(holder, node), await stillEnding(uid, node)] as const)
  )
  return new Map(await Promise.all(all))
}

/**
 * Drops nodes whose pods stay from the removal, if the object still lists them: an unlisted node counts as removed. A node that was
 * requested while the answers were pending waits for the next answers.
 *
 * @returns the nodes for which Kubernetes did not answer; they are retried after a pause
 */
function dropWhatStays(wanted: Wanted, found: readonly Holder[], answers: Answers): readonly Outcome[] {
  const unsure: Outcome[] = []
  for (const { key: holder, nodes } of found) {
    for (const { key: node } of nodes) {
      const uid = wanted.get(holder)?.get(node)
      if (uid === undefined) continue
      const answer = answers.get(nameOf(holder, node))
      if (answer === true) continue
      wanted.get(holder)?.delete(node)
      if (answer === undefined) unsure.push({ holder, node, uid, state: 'failed', why: UNSURE })
    }
  }
  return unsure
}

const UNSURE = 'left alone: Kubernetes did not confirm that the address is still that of a pod that ends'

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
    // The object was deleted after the read. The next read shows that.
    if (!isGone(error)) throw error
  }
}
