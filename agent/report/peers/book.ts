import { selfView } from '../snapshot/agent-view.ts'
import { SNAPSHOT_VERSION, type Snapshot } from '../snapshot/snapshot.ts'
import type { AckView, DrainLag, DrainView } from '../snapshot/drain-view.ts'
import { same } from '../../base/same.ts'
import { isUnproved, LIMITS } from '../show/history.ts'
import { ackHere, createClocks, lagHere } from './clocks.ts'
import {
  countedBefore,
  mostCounted,
  NO_DRAINS,
  addCounts,
  type DrainCounts,
  type StartCounts
} from './counts.ts'
import { finishedBy, joinedHere, joinFinished, type Finished } from './finished.ts'
import { joinLags } from './merge.ts'
import { createRecords } from './records.ts'
import type { Share } from './share.ts'
import { listOf, remembered } from './shown.ts'

/** The parts of an agent's snapshot that other agents need: all but the holders. */
export type Brief = Pick<
  Snapshot,
  'at' | 'agent' | 'gateways' | 'drains' | 'past' | 'unproved' | 'acks' | 'lags' | 'totals'
>

/** The history of all agents, as one of them knows it. Bounded; lost if all agents end at the same time. */
export interface Book {
  /** Takes in the agent's own state. */
  note(own: Brief): void
  /** Takes in another agent's share; `drains` are all its drains, and its clock is `ahead` ms ahead of this agent's. */
  hear(own: Brief, share: Share, drains: ReadonlyMap<string, DrainView>, ahead: number): void
  /** Completes finished drains from the views of the agent `by`, in which they may not be finished yet. */
  complete(by: string, drains: ReadonlyMap<string, DrainView>): void
  /** The share for an agent: all that changed in this book after change number `after`. */
  share(own: Brief, after: number): Share
  /** The agent's own drains. An unchanged drain stays the same object. */
  drains(): ReadonlyMap<string, DrainView>
  /** A finished drain, by uid. */
  finished(uid: string): DrainView | undefined
  /** All times are by this agent's clock. An unchanged list stays the same object. */
  history(): Pick<Snapshot, 'past' | 'unproved' | 'acks' | 'lags'>
  totals(): Snapshot['totals']
}

/** The most starts of agents whose hooks are counted. Beyond that, the oldest are forgotten. */
const STARTS = 64
/** A list is cut once it exceeds its limit by this factor. */
const SLACK = 1.25

const endedAt = ({ moments, deadline }: DrainView): number => moments.goneAt ?? moments.ackAt ?? deadline

/** The most views of finished drains in one share, the newest ones: without a bound, many agents would make it too long to read. */
const VIEWS = 4 * (LIMITS.past + LIMITS.unproved)

/** An item of the book, and the agent whose clock its times are by. */
type Timed<T> = T & { readonly by: string }

export function createBook(): Book {
  let seq = 0
  const next = () => (seq += 1)
  const clocks = createClocks()
  const joined = remembered(clocks, (one: Finished) => joinedHere(one, clocks))
  /** The drains to keep: the newest ones, and more of those that were not proved. */
  const kept = (all: readonly Finished[]): readonly Finished[] => {
    const unproved = new Set(all.filter(one => isUnproved(joined(one))).slice(0, LIMITS.unproved))
    return all.filter((one, i) => i < LIMITS.past || unproved.has(one))
  }
  const past = createRecords<Finished>({
    name: ({ name }) => name,
    join: joinFinished,
    at: one => endedAt(joined(one)),
    keep: kept,
    most: (LIMITS.past + LIMITS.unproved) * SLACK,
    next
  })
  const acks = createRecords<Timed<AckView>>({
    name: ({ at, ack }) => `${ack.pod.uid} ${at} ${ack.elapsedMs}`,
    join: known => known,
    at: ({ by, at }) => at - clocks.aheadOf(by),
    keep: all => all.slice(0, LIMITS.acks),
    most: LIMITS.acks * SLACK,
    next
  })
  const lags = createRecords<Timed<DrainLag>>({
    name: ({ uid }) => uid,
    join: joinLags,
    at: ({ by, at }) => at - clocks.aheadOf(by),
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
  const shown = {
    past: listOf(clocks, past, joined),
    acks: listOf(
      clocks,
      acks,
      remembered(clocks, ({ by, ...ack }: Timed<AckView>) => ackHere(ack, clocks.aheadOf(by)))
    ),
    lags: listOf(
      clocks,
      lags,
      remembered(clocks, ({ by, ...lag }: Timed<DrainLag>) => lagHere(lag, clocks.aheadOf(by)))
    )
  }
  let lists = { of: shown.past(), past: shown.past(), unproved: shown.past() }

  const note = (own: Brief): void => {
    const by = own.agent.id
    for (const drain of added(own.unproved, last?.unproved)) past.put(finishedBy(by, drain))
    for (const drain of added(own.past, last?.past)) past.put(finishedBy(by, drain))
    for (const ack of added(own.acks, last?.acks)) acks.put({ ...ack, by })
    for (const lag of added(own.lags, last?.lags)) lags.put({ ...lag, by })
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
  const counted = (): DrainCounts => addCounts(before ?? NO_DRAINS, last?.totals ?? NO_DRAINS)

  return {
    note,
    complete(by, drains) {
      for (const [uid, drain] of drains)
        if (past.get(uid)) past.put({ name: uid, views: { [by]: { ...drain, hooks: 0 } } })
    },
    hear(own, share, drains, ahead) {
      note(own)
      const { id } = share.agent
      clocks.learn(id, ahead, withoutKey(share.clocks ?? {}, own.agent.id))
      for (const { by = id, ...drain } of share.past) past.put(finishedBy(by, drain))
      for (const { by = id, ...ack } of share.acks) acks.put({ ...ack, by })
      for (const { by = id, ...lag } of share.lags) lags.put({ ...lag, by })
      for (const start of share.starts) starts.put(start)
      told = mostCounted([told, share.counts])
      // While this agent is not ready, it has not counted the running drains. If it started first, it lacks nothing.
      const { missingParts, startedAt } = own.agent
      if (missingParts.length > 0 || startedAt < (share.agent.startedAt ?? Infinity) - ahead) return
      const known = new Set([...own.drains, ...own.past].map(({ uid }) => uid))
      before ??= countedBefore(share.counts, known, [...drains.values(), ...shown.past()])
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
        past: past
          .since(after)
          .flatMap(({ views }) => Object.entries(views).map(([by, drain]) => ({ ...drain, by })))
          .slice(-VIEWS),
        acks: acks.since(after),
        lags: lags.since(after),
        clocks: clocks.all(),
        counts: counted(),
        starts: starts.since(after)
      }
    },
    drains: () => views,
    finished(uid) {
      const one = past.get(uid)
      return one && joined(one)
    },
    history() {
      const of = shown.past()
      if (lists.of !== of)
        lists = {
          of,
          past: of.slice(0, LIMITS.past),
          unproved: of.filter(isUnproved).slice(0, LIMITS.unproved)
        }
      return { past: lists.past, unproved: lists.unproved, acks: shown.acks(), lags: shown.lags() }
    },
    totals: () => ({
      ...mostCounted([counted(), told]),
      rounds: last?.totals.rounds ?? 0,
      hooks: sum(starts.list().map(({ hooks }) => hooks)),
      savedMs: sum(starts.list().map(({ savedMs }) => savedMs))
    })
  }
}

const withoutKey = <T>(all: Readonly<Record<string, T>>, key: string): Record<string, T> =>
  Object.fromEntries(Object.entries(all).filter(([name]) => name !== key))

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** The new items of a list, oldest first. Items are only ever added at its head. */
function added<T>(list: readonly T[], known: readonly T[] | undefined): readonly T[] {
  const at = known?.[0] === undefined ? -1 : list.indexOf(known[0])
  return list.slice(0, at === -1 ? list.length : at).toReversed()
}
