import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import { isUnsupported, retryAfterOf } from '../transport/objects.ts'
import { createAssurance, createExpectations, startHeartbeat } from './assurance.ts'
import { createBackoff, createLiveness, createNextStep, Doubted, type WatchStatus } from './watch-status.ts'
import { type Collection, list, notOlderThan, isLater, type Revision } from './collection.ts'
import type { Connection } from '../transport/connection.ts'
import { follow, NoEndMarker, type Follower, metaOf, type Sink, createIntake } from './follow.ts'
import type { Log } from '../../base/log.ts'

export interface ReflectorSettings {
  readonly heartbeatEveryMs: number
  /** How long the watch may take to reach a heartbeat's revision, in ms: more than the minute between bookmarks. */
  readonly heartbeatLimitMs: number
  readonly verifyMs: number
  /** The longest silence inside the initial events of a WatchList, before a paged list is used. */
  readonly initialIdleMs: number
  /** How long a watch that ended normally may stay down before it counts as stale, in ms. */
  readonly gapMs: number
}

const REFLECTOR_DEFAULTS: ReflectorSettings = {
  heartbeatEveryMs: 30_000,
  heartbeatLimitMs: 90_000,
  verifyMs: 1_000,
  initialIdleMs: 10_000,
  gapMs: 1_000
}

export type Reflector = ReturnType<typeof startReflector>

interface ReflectorOptions<F extends { readonly uid: string }> {
  readonly connection: Connection
  readonly collection: Collection
  /** Must never throw. */
  readonly toFact: (object: unknown) => F | undefined
  readonly sink: Sink<F>
  readonly clock: Clock
  readonly log: Log
  /** Facts or the state have changed. */
  readonly onChange: () => void
  readonly settings?: Partial<ReflectorSettings>
}

/** A watch that ends normally but lived for less than this counts as broken, in ms. */
const LIVED_MS = 1_000

/**
 * Lists and watches one collection for ever, whatever happens to the server or the connection. It never empties its state: a new list is
 * merged, and objects that it lacks are reported as gone at its end.
 */
export function startReflector<F extends { readonly uid: string }>(options: ReflectorOptions<F>) {
  const { connection, collection, clock, log, onChange } = options
  const settings = { ...REFLECTOR_DEFAULTS, ...options.settings }
  const backoff = createBackoff()
  const intake = createIntake(options.toFact, options.sink, onChange, log)
  const stopping = new AbortController()
  const counters = { events: 0, lists: 0, failures: 0, silences: 0 }
  let turn = new AbortController()
  const next = createNextStep()
  let watchListWorks = true
  let revision: Revision | undefined
  let lastEventAt: Millis | undefined
  let cancelGap = () => {}

  const liveness = createLiveness({
    clock,
    log,
    onChange,
    facts: () => ({ objects: intake.known, revision })
  })
  const live = () => {
    cancelGap()
    liveness.live()
  }
  const distrust = (why: string) => {
    counters.silences += 1
    liveness.lost(why)
    turn.abort(new Doubted(why))
  }
  const expectations = createExpectations(clock, distrust)

  const listed = (at: Revision) => {
    intake.endList(at)
    revision = at
    liveness.synced()
    next.listed()
    counters.lists += 1
    expectations.clear()
    live()
  }

  const follower: Follower = {
    opened: live,
    heard() {
      lastEventAt = clock.now()
      counters.events += 1
      next.heard()
    },
    set: object => intake.set(object),
    gone: object => intake.gone(object),
    listed,
    reached(reached) {
      if (reached !== undefined) revision = reached
      expectations.seen(revision)
    }
  }
  const watching = { connection, collection, clock, initialIdleMs: settings.initialIdleMs }

  const takeTurn = async (signal: AbortSignal) => {
    const step = next.step()
    if (step.does === 'list') {
      const { from } = step
      if (watchListWorks) {
        const params = {
          ...notOlderThan(from),
          sendInitialEvents: true,
          resourceVersionMatch: 'NotOlderThan'
        }
        try {
          intake.beginList()
          return await follow(watching, params, true, follower, signal)
        } catch (error) {
          if (!isUnsupported(error) && !(error instanceof NoEndMarker)) throw error
          watchListWorks = false
          log.info({ err: error }, 'no WatchList here: using paged lists')
        }
      }
      const handlers = { onBegin: intake.beginList, onItem: intake.set }
      listed(await list(connection, collection, from, handlers, signal))
    }
    return follow(watching, { resourceVersion: revision }, false, follower, signal)
  }

  /** How long to wait before the next step, in ms. The same goes for `afterEnd`. */
  const afterFailure = (error: unknown): number => {
    counters.failures += 1
    next.failed(error, revision)
    liveness.lost(error instanceof Error ? error.message : String(error))
    return Math.max(retryAfterOf(error), backoff(liveness.livedMs()))
  }
  const afterEnd = (): number => {
    cancelGap()
    cancelGap = clock.alarm(clock.now() + settings.gapMs, () =>
      liveness.lost('the watch ended and did not come back yet')
    )
    return liveness.livedMs() >= LIVED_MS ? 0 : backoff(liveness.livedMs())
  }

  const run = async () => {
    while (!stopping.signal.aborted) {
      turn = new AbortController()
      liveness.begun()
      let waitMs: number
      try {
        await takeTurn(AbortSignal.any([stopping.signal, turn.signal]))
        waitMs = afterEnd()
      } catch (error) {
        if (stopping.signal.aborted) break
        waitMs = afterFailure(error)
      }
      if (waitMs > 0) await clock.sleep(waitMs, stopping.signal).catch(() => {})
    }
  }
  const running = run()
  const isLive = () => liveness.state() === 'live'
  const position = () => (isLive() ? { turn, revision } : undefined)
  const behind = (now: Revision) => distrust(`the server has gone back in time, to ${now}`)
  const assurance = createAssurance(
    { connection, collection, clock, position, behind },
    stopping.signal,
    onChange
  )
  const stopHeartbeat = startHeartbeat({
    connection,
    collection,
    clock,
    everyMs: settings.heartbeatEveryMs,
    position,
    behind,
    expect: now => {
      if (isLater(now, revision)) {
        expectations.expect(now, settings.heartbeatLimitMs, 'the watch is silent about what the server has')
      }
    }
  })

  return {
    status: (): WatchStatus => ({
      state: liveness.state(),
      synced: liveness.isSynced(),
      lastEventAt,
      objects: intake.known,
      problem: liveness.problem(),
      counters: { ...counters }
    }),
    /** The watch must show this revision (or, without one, any event) within `verifyMs`. Otherwise everything is listed again. */
    verify(wanted?: Revision) {
      if (!isLive()) return
      const fresh = lastEventAt !== undefined && clock.now() - lastEventAt < settings.verifyMs
      if (wanted === undefined ? fresh : !isLater(wanted, revision)) return
      expectations.expect(wanted, settings.verifyMs, 'the watch does not show what the server says')
    },
    /** Asks the server to prove that the watch is complete; `assuredAt` changes once it has. */
    assure: () => assurance.again(),
    /** When the last successful proof was requested; `undefined` before the first one. */
    assuredAt: () => assurance.at(),
    /** The revision that it has reached. */
    revision: () => revision,
    /** Takes an object of this collection from another read. */
    learn(object: unknown) {
      const { uid, revision: reached } = metaOf(object) ?? {}
      if (uid === undefined || reached === undefined) return
      // A slow answer may be older than the watch, which may have shown the object's deletion since.
      const mayBeGone = isLive() || (revision !== undefined && !intake.knows(uid))
      if (mayBeGone && !isLater(reached, revision)) return
      intake.learn(object)
      if (isLive()) expectations.expect(reached, settings.verifyMs, 'the watch does not show an object read')
    },
    /** Resolves when all of its work has stopped. */
    async stop() {
      stopping.abort(new Error('stopped'))
      stopHeartbeat()
      expectations.clear()
      await running
      cancelGap()
      expectations.clear()
    }
  }
}
