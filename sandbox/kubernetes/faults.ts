import { ApiError } from './errors.ts'
import type { ResourceName } from './resources.ts'
import type { Verb } from './target.ts'

/** The requests that a fault hits; every given field must match. */
interface Where {
  readonly method?: string
  /** A part of the path, or a pattern for it, without the query. */
  readonly path?: string | RegExp
  /** True: only watches. False: all but watches. */
  readonly watch?: boolean
}

export interface Asked {
  readonly method: string
  readonly path: string
  readonly watch: boolean
}

/** Ends the fault. Calling it again does nothing. */
export type Undo = () => void

interface RuleOptions extends Where {
  /** How many requests the fault hits; default: all until `Undo` is called. */
  readonly times?: number
}

type Effect =
  | { readonly kind: 'delay'; readonly ms: () => number }
  | { readonly kind: 'answer'; readonly error: ApiError }
  | { readonly kind: 'reset' }
  | { readonly kind: 'hang' }

/** Misbehaviour of single requests and events. `ConnectionFaults` has the faults of connections. */
export interface RequestFaults {
  /** Every answer comes `ms` later. */
  delay(ms: number | (() => number), options?: RuleOptions): Undo
  /** Answers with this HTTP code and a matching Status object. */
  answer(
    code: number,
    options?: RuleOptions & { readonly retryAfterSeconds?: number; readonly message?: string }
  ): Undo
  /** Drops the connection with a RST instead of answering. */
  reset(options?: RuleOptions): Undo
  /** Takes the request and never answers. */
  hang(options?: RuleOptions): Undo
  /** RBAC denies such requests: they get 403, and SelfSubjectAccessReview reports the same. `*` matches any. */
  deny(what: { readonly verb: Verb | '*'; readonly resource: ResourceName | '*' }): Undo
  /** Until undone, lists show the state at this moment, however old it becomes. */
  staleLists(): Undo
  /** The next events are broken lines, one per watch stream and event. */
  corruptEvents(times?: number): Undo
  /** Event lines arrive in pieces cut anywhere, also inside a character. */
  splitEvents(): Undo
  /**
   * Open watches lose events, while connection and pings continue; with `newOnes`, later watches too. Undo ends the watches that lost
   * events.
   */
  muteWatches(options?: { readonly newOnes?: boolean }): Undo
}

/** The state of the faults, as the server queries it. */
export interface FaultState {
  effects(asked: Asked): readonly Effect[]
  denies(verb: Verb, resource: string): boolean
  staleAt(): number | undefined
  /** True once for each event to be broken. */
  takeCorruption(): boolean
  splits(): boolean
  newWatchesMute(): boolean
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout'
}

const fits = (where: Where, asked: Asked): boolean =>
  (where.method === undefined || where.method === asked.method) &&
  (where.watch === undefined || where.watch === asked.watch) &&
  (where.path === undefined ||
    (typeof where.path === 'string' ? asked.path.includes(where.path) : where.path.test(asked.path)))

/** A set whose `add` returns the function that removes the member. */
function switches<T>(): { readonly on: ReadonlySet<T>; add(value: T): Undo; readonly clear: () => void } {
  const on = new Set<T>()
  return { on, add: value => (on.add(value), () => void on.delete(value)), clear: () => on.clear() }
}

export function createFaults(hooks: {
  /** The present resourceVersion. */
  version(): number
  /** Mutes or unmutes every open watch. */
  muteOpenWatches(mute: boolean): void
}): { readonly faults: RequestFaults; readonly state: FaultState; readonly clear: () => void } {
  const rules = switches<{ readonly where: Where; left: number; readonly effect: Effect }>()
  const denials = switches<{ readonly verb: string; readonly resource: string }>()
  const stale = switches<{ readonly at: number }>()
  const corruptions = switches<{ left: number }>()
  const splitting = switches<object>()
  const muted = switches<object>()

  const rule = (effect: Effect, { times = Infinity, ...where }: RuleOptions = {}): Undo =>
    rules.add({ where, left: times, effect })

  const faults: RequestFaults = {
    delay: (ms, options) => rule({ kind: 'delay', ms: typeof ms === 'number' ? () => ms : ms }, options),
    answer(code, { retryAfterSeconds, message, ...options } = {}) {
      const reason = REASONS[code] ?? 'Unknown'
      const extras = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
      const error = new ApiError(code, reason, message ?? `sandbox fault: ${code}`, extras)
      return rule({ kind: 'answer', error }, options)
    },
    reset: options => rule({ kind: 'reset' }, options),
    hang: options => rule({ kind: 'hang' }, options),
    deny: what => denials.add({ ...what }),
    staleLists: () => stale.add({ at: hooks.version() }),
    corruptEvents: (times = 1) => corruptions.add({ left: times }),
    splitEvents: () => splitting.add({}),
    muteWatches({ newOnes = false } = {}) {
      hooks.muteOpenWatches(true)
      const undo = newOnes ? muted.add({}) : () => {}
      return () => {
        undo()
        hooks.muteOpenWatches(false)
      }
    }
  }

  const state: FaultState = {
    effects(asked) {
      const hit = [...rules.on].filter(({ where, left }) => left > 0 && fits(where, asked))
      for (const one of hit) one.left -= 1
      return hit.map(({ effect }) => effect)
    },
    denies: (verb, resource) =>
      [...denials.on].some(
        one => (one.verb === '*' || one.verb === verb) && (one.resource === '*' || one.resource === resource)
      ),
    staleAt: () => [...stale.on][0]?.at,
    takeCorruption() {
      const one = [...corruptions.on].find(({ left }) => left > 0)
      if (one) one.left -= 1
      return one !== undefined
    },
    splits: () => splitting.on.size > 0,
    newWatchesMute: () => muted.on.size > 0
  }

  return {
    faults,
    state,
    clear() {
      for (const set of [rules, denials, stale, corruptions, splitting, muted]) set.clear()
      hooks.muteOpenWatches(false)
    }
  }
}
