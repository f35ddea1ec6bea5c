import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { WatchState } from './parts.ts'

/** Whether a watch is live, and since when. The only owner of that state. */
interface Liveness {
  state(): WatchState
  /** Why it is not live, in words; empty if it is. */
  problem(): string
  /** Whether the first list is complete. */
  isSynced(): boolean
  /** Everything was listed. */
  synced(): void
  /** A new watch is being tried. */
  begun(): void
  live(): void
  lost(why: string): void
  /** How long the present or last watch has lived, in ms; 0 if it was never live. */
  livedMs(): number
}

interface LivenessOptions {
  readonly clock: Clock
  readonly log: Log
  readonly onChange: () => void
  /** Logged when the watch becomes live. */
  readonly facts: () => Readonly<Record<string, unknown>>
}

export function createLiveness({ clock, log, onChange, facts }: LivenessOptions): Liveness {
  let state: WatchState = 'connecting'
  let problem = 'not connected yet'
  let isSynced = false
  let liveSince: Millis | undefined
  let notLiveSince = clock.now()

  const become = (now: WatchState, why: string) => {
    const changed = state !== now
    if (why !== problem && why !== '') log.warn({ problem: why, state: now }, 'watch is not live')
    if (changed && now === 'live')
      log.info({ ...facts(), tookMs: Math.round(clock.now() - notLiveSince) }, 'watch is live')
    if (state === 'live') notLiveSince = clock.now()
    state = now
    problem = why
    if (changed) onChange()
  }

  return {
    state: () => state,
    problem: () => problem,
    isSynced: () => isSynced,
    synced: () => void (isSynced = true),
    begun: () => void (liveSince = undefined),
    live() {
      liveSince = clock.now()
      become('live', '')
    },
    lost: why => become(isSynced ? 'stale' : 'connecting', why),
    livedMs: () => (liveSince === undefined ? 0 : clock.now() - liveSince)
  }
}
