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

export const REFLECTOR_DEFAULTS: ReflectorSettings = {
  heartbeatEveryMs: 30_000,
  heartbeatLimitMs: 90_000,
  verifyMs: 1_000,
  initialIdleMs: 10_000,
  gapMs: 1_000
}
