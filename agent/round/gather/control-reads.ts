import type { Millis, NodeKey, PodUid } from '../../rules/drain/facts.ts'
import type { Sighting } from '../../gateway/apisix/control-api.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'
import type { Observation } from '../../rules/proof/verdict.ts'
import type { Wanted } from '../../rules/proof/observed.ts'

/** The results of one gateway's reads, for every drain that needs them. */
interface ControlReads {
  /** Sets the complete list of wanted drains. Returns whether the observation of any drain starts from nothing. */
  want(list: readonly Wanted[]): boolean
  /** Records a completed read. Returns whether a node has appeared or disappeared since the read before. */
  seen(sighting: Sighting, endedAt: Millis): boolean
  failed(problem: string): void
  get(uid: PodUid): Observation | undefined
}

interface Watched {
  readonly wanted: Wanted
  /** Reads that began before this time do not count: the removal was not accepted yet, or another read still showed the node. */
  from: Millis
  observation: Observation
}

const NOTHING: Observation = { cleanReads: 0, firstCleanAt: undefined, stillListed: false, problem: '' }

export function createControlReads(): ControlReads {
  const watched = new Map<PodUid, Watched>()
  return {
    want(list) {
      const kept = new Set(list.map(w => w.uid))
      for (const uid of watched.keys()) if (!kept.has(uid)) watched.delete(uid)
      let anew = false
      for (const wanted of list) {
        const known = watched.get(wanted.uid)
        if (known && sameWish(known.wanted, wanted)) continue
        watched.set(wanted.uid, { wanted, from: wanted.since, observation: NOTHING })
        anew = true
      }
      return anew
    },
    seen({ holders, beganAt }, endedAt) {
      const listed = addresses(holders)
      let turned = false
      for (const entry of watched.values()) {
        if (beganAt < entry.from) continue
        const { observation } = entry
        const node = entry.wanted.nodes.find(n => listed.has(n))
        const wasClean = observation.cleanReads > 0
        turned ||= wasClean === (node !== undefined)
        if (node === undefined) {
          const { cleanReads, firstCleanAt = endedAt } = observation
          entry.observation = { ...NOTHING, cleanReads: cleanReads + 1, firstCleanAt }
        } else {
          // Reads that overlap this one may show the same moment. Only a read that begins after this one has ended can be clean again.
          entry.from = endedAt
          const problem = `still lists ${node} in ${listed.get(node)}`
          entry.observation = { ...NOTHING, stillListed: true, problem }
        }
      }
      return turned
    },
    failed(problem) {
      for (const entry of watched.values()) entry.observation = { ...entry.observation, problem }
    },
    get: uid => watched.get(uid)?.observation
  }
}

const sameWish = (a: Wanted, b: Wanted): boolean =>
  a.since === b.since && a.nodes.length === b.nodes.length && a.nodes.every((node, i) => node === b.nodes[i])

/** Every listed node, under its whole address and under its bare host, with one holder that lists it. */
function addresses(holders: ReadonlyMap<HolderKey, readonly NodeKey[]>): Map<NodeKey, HolderKey> {
  const all = new Map<NodeKey, HolderKey>()
  for (const [holder, nodes] of holders)
    for (const node of nodes) all.set(node, holder).set(node.replace(/:\d+$/, ''), holder)
  return all
}
