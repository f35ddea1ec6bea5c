import { drainName } from '../page/drain-name.ts'
import { selfView } from '../page/agent-view.ts'
import {
  SNAPSHOT_VERSION,
  type AckView,
  type DrainLag,
  type DrainView,
  type Snapshot
} from '../page/snapshot.ts'
import { same } from '../base/same.ts'
import { isUnproved, LIMITS } from '../show/history.ts'
import { countedBefore, mostCounted, NO_DRAINS, plus, type DrainCounts, type StartCounts } from './counts.ts'
import { joinDrains, joinLags } from './merge.ts'
import { createRecords } from './records.ts'
import type { Share } from './share.ts'

/** The parts of an agent's snapshot that other agents need: all but the holders. */
export type Brief = Pick<
  Snapshot,
  'at' | 'agent' | 'gateways' | 'drains' | 'past' | 'unproved' | 'acks' | 'lags' | 'totals'
>

/** The history of all agents, as one of them knows it. Bounded; lost if all agents end at the same time. */
export interface Book {
  /** Takes in the agent's own state. */
  note(own: Brief): void
  /** Takes in another agent's share; `drains` are all its drains. */
  hear(own: Brief, share: Share, drains: ReadonlyMap<string, DrainView>): void
  /** Completes finished drains from the views of an agent in which they are not finished yet. */
  complete(drains: ReadonlyMap<string, DrainView>): void
  /** The share for an agent: all that changed in this book after change number `after`. */
  share(own: Brief, after: number): Share
  /** The agent's own drains. An unchanged drain stays the same object. */
  drains(): ReadonlyMap<string, DrainView>
  /** A finished drain, by uid. */
  finished(uid: string): DrainView | undefined
  /** An unchanged list stays the same object. */
  history(): Pick<Snapshot, 'past' | 'unproved' | 'acks' | 'lags'>
  totals(): Snapshot['totals']
}

/** The most starts of agents whose hooks are counted. Beyond that, the oldest are forgotten. */
const STARTS = 64
/** A list is cut once it exceeds its limit by this factor. */
const SLACK = 1.25

const endedAt = ({ moments, deadline }: DrainView): number => moments.goneAt ?? moments.ackAt ?? deadline

/** The drains to keep: the newest ones, and more of those that were not proved. */
function kept(drains: readonly DrainView[]): readonly DrainView[] {
  const unproved = new Set(drains.filter(isUnproved).slice(0, LIMITS.unproved))
  return drains.filter((drain, i) => i < LIMITS.past || unproved.has(drain))
}

export function createBook(): Book {
  let seq = 0
  const next = () => (seq += 1)
  const past = createRecords<DrainView>({
    name: drainName,
    join: joinDrains,
    at: endedAt,
    keep: kept,
    most: (LIMITS.past + LIMITS.unproved) * SLACK,
    next
  })
  const acks = createRecords<AckView>({
    name: ({ at, ack }) => `${ack.pod.uid} ${at} ${ack.elapsedMs}`,
    join: known => known,
    at: ({ at }) => at,
    keep: all => all.slice(0, LIMITS.acks),
    most: LIMITS.acks * SLACK,
    next
  })
  const lags = createRecords<DrainLag>({
    name: ({ uid }) => uid,
    join: joinLags,
    at: ({ at }) => at,
    keep: all => all.slice(0, LIMITS.lags),
    most: LIMITS.lags * SLACK,
    next
  })
  const starts = createRecords<StartCounts>({
    name: ({ id }) => id,
    // The count of hooks only grows.
    join: (known, one) => (one.hooks > known.hooks ? one : known),
    at: ({ startedAt }) => startedAt,
    keep: all => all.slice(0, STARTS),
    most: STARTS,
    next
  })
  const live = new Map<string, { readonly drain: DrainView; readonly seq: number }>()
  let views: ReadonlyMap<string, DrainView> = new Map()
  let last: Brief | undefined
  /** The drains that an older agent counted before this agent started; `undefined` until one has reported them. */
  let before: DrainCounts | undefined
  let told = NO_DRAINS
  let shown:
    | {
        readonly of: readonly DrainView[]
        readonly past: readonly DrainView[]
        readonly unproved: readonly DrainView[]
      }
    | undefined

  const note = (own: Brief): void => {
    for (const drain of added(own.unproved, last?.unproved)) past.put(drain)
    for (const drain of added(own.past, last?.past)) past.put(drain)
    for (const ack of added(own.acks, last?.acks)) acks.put(ack)
    for (const lag of added(own.lags, last?.lags)) lags.put(lag)
    const uids = new Set(own.drains.map(({ uid }) => uid))
    for (const uid of live.keys()) if (!uids.has(uid)) live.delete(uid)
    for (const drain of own.drains) {
      const known = live.get(drain.uid)
      if (!known || !same(known.drain, drain)) live.set(drain.uid, { drain, seq: next() })
    }
    views = new Map([...live].map(([uid, { drain }]) => [uid, drain]))
    const { id, startedAt } = own.agent
    starts.put({ id, startedAt, hooks: own.totals.hooks, savedMs: own.totals.savedMs })
    last = own
  }
  const counted = (): DrainCounts => plus(before ?? NO_DRAINS, last?.totals ?? NO_DRAINS)

  return {
    note,
    complete(drains) {
      for (const [uid, drain] of drains) if (past.get(uid)) past.put({ ...drain, hooks: 0 })
    },
    hear(own, share, drains) {
      note(own)
      for (const drain of share.past) past.put(drain)
      for (const ack of share.acks) acks.put(ack)
      for (const lag of share.lags) lags.put(lag)
      for (const start of share.starts) starts.put(start)
      told = mostCounted([told, share.counts])
      // While this agent is not ready, it has not counted the running drains. If it started first, it lacks nothing.
      const { missingParts, startedAt } = own.agent
      if (missingParts.length > 0 || startedAt < (share.agent.startedAt ?? Infinity)) return
      const known = new Set([...own.drains, ...own.past].map(({ uid }) => uid))
      before ??= countedBefore(share.counts, known, [...drains.values(), ...past.list()])
    },
    share(own, after) {
      note(own)
      return {
        version: SNAPSHOT_VERSION,
        at: own.at,
        seq,
        agent: selfView(own.at, own.agent, own.gateways),
        live: [...live.keys()],
        drains: [...live.values()].filter(one => one.seq > after).map(({ drain }) => drain),
        past: past.since(after),
        acks: acks.since(after),
        lags: lags.since(after),
        counts: counted(),
        starts: starts.since(after)
      }
    },
    drains: () => views,
    finished: uid => past.get(uid),
    history() {
      const of = past.list()
      if (shown?.of !== of) {
        shown = {
          of,
          past: of.slice(0, LIMITS.past),
          unproved: of.filter(isUnproved).slice(0, LIMITS.unproved)
        }
      }
      return { past: shown.past, unproved: shown.unproved, acks: acks.list(), lags: lags.list() }
    },
    totals: () => ({
      ...mostCounted([counted(), told]),
      rounds: last?.totals.rounds ?? 0,
      hooks: sum(starts.list().map(({ hooks }) => hooks)),
      savedMs: sum(starts.list().map(({ savedMs }) => savedMs))
    })
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** The new items of a list, oldest first. Items are only ever added at its head. */
function added<T>(list: readonly T[], known: readonly T[] | undefined): readonly T[] {
  const at = known?.[0] === undefined ? -1 : list.indexOf(known[0])
  return list.slice(0, at === -1 ? list.length : at).toReversed()
}
