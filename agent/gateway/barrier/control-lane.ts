import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { isConnectionRefused } from '../../base/errors.ts'
import { type GatewayFact, type Millis, type PodUid, type NodeKey, doubled } from '../../rules/drain/facts.ts'
import type { ReadGateway, Sighting } from '../apisix/control-api.ts'
import type { Observation } from '../../rules/proof/verdict.ts'
import type { Wanted } from '../../rules/proof/observed.ts'
import { sameNodes } from './desired-entry.ts'
import type { Freshness } from './gateway-state.ts'
import type { HolderKey } from '../../rules/plan/holder.ts'

interface ControlLaneOptions {
  readonly read: ReadGateway
  readonly clock: Clock
  readonly log: Logger
  /** Called after every read. */
  readonly tell: () => void
}

/** The pause between two reads, in ms, while a drain wants evidence: a proof waits for seconds after the first clean one. */
const PAUSE_MS = 200
/** The pause after a failed read, in ms; doubled with each consecutive failure. */
const BACK_OFF_MS = { first: 50, longest: 5000 }
/**
 * The pause between two reads while no drain needs one: `ms`, or `times` the last read's duration if that is longer. So reads take little of a
 * worker's time.
 */
const IDLE = { usual: { ms: 15_000, times: 100 }, hurried: { ms: 1000, times: 20 } }
/** The longest wait before the next look at what is due, in ms. */
const LOOK_MS = 1000
/** For how long a client counts as waiting, in ms. */
const HURRIED_MS = 5000

/** All reads of the Control API of one gateway: all the time while some drain wants evidence, else at intervals. One read serves all. */
export function openControlLane({ ip, name: gateway }: GatewayFact, options: ControlLaneOptions) {
  const { read, clock, log, tell } = options
  const observing = createControlReads()
  const ended = new AbortController()
  const { signal } = ended
  let wanted: readonly Wanted[] = []
  let hurriedUntil = -Infinity
  let failures = 0
  let isWarned = false
  let tookMs = 0
  let wake = new AbortController()
  let sighting: Sighting | undefined
  let freshness: Freshness | undefined

  const readOnce = async (): Promise<void> => {
    const beganAt = clock.now()
    try {
      const seen = await read(ip, signal)
      if (isWarned) log.info({ gateway }, 'gateway can be observed again')
      isWarned = false
      failures = 0
      const now = clock.now()
      tookMs = now - beganAt
      sighting = seen
      freshness = { lastSuccessAt: now, lastAttemptAt: now, problem: '', refused: false }
      observing.seen(seen, now)
    } catch (error) {
      if (signal.aborted) return
      failures++
      // Without a drain, nothing depends on it.
      if (wanted.length > 0 && !isWarned) log.warn({ err: error, gateway }, 'gateway cannot be observed')
      isWarned ||= wanted.length > 0
      const problem = (error as Error).message
      const lastSuccessAt = freshness?.lastSuccessAt
      const refused = isConnectionRefused(error)
      freshness = { lastSuccessAt, lastAttemptAt: clock.now(), problem, refused }
      observing.failed(problem)
    }
    tell()
  }

  const pause = (): number => (failures > 0 ? doubled(BACK_OFF_MS, failures - 1) : PAUSE_MS)

  /** When the next read is due. */
  const dueAt = (): Millis => {
    const last = freshness?.lastAttemptAt ?? -Infinity
    const { ms, times } = clock.now() < hurriedUntil ? IDLE.hurried : IDLE.usual
    return last + (wanted.length > 0 ? pause() : Math.max(ms, tookMs * times))
  }
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const waitMs = Math.min(LOOK_MS, dueAt() - clock.now())
      if (waitMs > 0) {
        wake = new AbortController()
        await clock.sleep(waitMs, wake.signal).catch(() => {})
      } else await readOnce()
    }
  }
  const running = run()
  return {
    /** Sets the complete list of drains that want evidence. Drains that are not in it any more are forgotten. */
    want(list: readonly Wanted[]) {
      wanted = list
      observing.want(wanted)
      wake.abort()
    },
    /** A client waits for the gateway's lists: reads at intervals are more frequent for a while. */
    hurry: () => void (hurriedUntil = clock.now() + HURRIED_MS),
    observation: (uid: PodUid) => observing.get(uid),
    /** The nodes that the gateway listed when it was last read. */
    sighting: () => sighting,
    /** `undefined` before the first read. */
    freshness: () => freshness,
    stop() {
      ended.abort()
      wake.abort()
      return running
    }
  }
}

interface Watched {
  readonly wanted: Wanted
  observation: Observation
}

const NOTHING: Observation = { cleanReads: 0, firstCleanAt: undefined, stillListed: false, problem: '' }

/** The results of one gateway's reads, for every drain that needs them. */
export function createControlReads() {
  const watched = new Map<PodUid, Watched>()
  return {
    /** Sets the complete list of wanted drains. */
    want(list: readonly Wanted[]) {
      const kept = new Set(list.map(w => w.uid))
      for (const uid of watched.keys()) if (!kept.has(uid)) watched.delete(uid)
      for (const wanted of list) {
        const known = watched.get(wanted.uid)
        if (known && sameWish(known.wanted, wanted)) continue
        watched.set(wanted.uid, { wanted, observation: NOTHING })
      }
    },
    /** Records a completed read. */
    seen({ holders, beganAt }: Sighting, endedAt: Millis) {
      const listed = addresses(holders)
      for (const entry of watched.values()) {
        if (beganAt < entry.wanted.since) continue
        const { observation } = entry
        const node = entry.wanted.nodes.find(n => listed.has(n))
        if (node === undefined) {
          const { cleanReads, firstCleanAt = endedAt } = observation
          entry.observation = { ...NOTHING, cleanReads: cleanReads + 1, firstCleanAt }
        } else {
          const problem = `still lists ${node} in ${listed.get(node)}`
          entry.observation = { ...NOTHING, stillListed: true, problem }
        }
      }
    },
    failed(problem: string) {
      for (const entry of watched.values()) entry.observation = { ...entry.observation, problem }
    },
    get: (uid: PodUid): Observation | undefined => watched.get(uid)?.observation
  }
}

const sameWish = (a: Wanted, b: Wanted): boolean => a.since === b.since && sameNodes(a, b)

/** Every listed node, under its whole address and under its bare host, with one holder that lists it. */
function addresses(holders: ReadonlyMap<HolderKey, readonly NodeKey[]>): Map<NodeKey, HolderKey> {
  const all = new Map<NodeKey, HolderKey>()
  for (const [holder, nodes] of holders)
    for (const node of nodes) all.set(node, holder).set(node.replace(/:\d+$/, ''), holder)
  return all
}
