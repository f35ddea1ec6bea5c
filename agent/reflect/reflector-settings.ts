export interface ReflectorSettings {
  readonly heartbeatEveryMs: number
  /** How long after a heartbeat the watch may take to get as far as it. More than the minute between bookmarks. */
  readonly heartbeatLimitMs: number
  readonly verifyMs: number
  /** The longest silence inside the initial events of a WatchList, before a paged list is used. */
  readonly initialIdleMs: number
  /** Between the regular end of a watch and the next one; after that it counts as stale. */
  readonly gapMs: number
}

export const REFLECTOR_DEFAULTS: ReflectorSettings = {
  heartbeatEveryMs: 30_000,
  heartbeatLimitMs: 90_000,
  verifyMs: 1_000,
  initialIdleMs: 10_000,
  gapMs: 1_000
}
