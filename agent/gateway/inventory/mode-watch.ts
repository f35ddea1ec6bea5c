import type { Logger } from 'pino'
import { createListeners, type Clock } from '../../base/clock.ts'
import type { AdminApi } from '../apisix/admin-api.ts'
import { detectMode, type Mode } from './mode.ts'
import { doubled } from '../../rules/drain/times.ts'

/** The known mode of this APISIX. */
export interface ModeState {
  /** `undefined`: not detected yet. */
  readonly mode: 'etcd' | 'standalone' | undefined
  /** Why the last detection failed, or empty. */
  readonly problem: string
}

/** Detects the mode and its changes, because another APISIX can be installed behind the same Service. */
export interface ModeWatch {
  current(): ModeState
  /** Called after every change. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void
  stop(): void
}

interface ModeWatchOptions {
  readonly admin: Pick<AdminApi, 'standalone'>
  readonly clock: Clock
  readonly log: Logger
}

/** The pause between two checks, in ms: until the mode is known (doubled each time), and after that. */
const EVERY_MS = { first: 500, longest: 10_000, known: 30_000 }

const WRITTEN: Readonly<Record<'etcd' | 'standalone', string>> = {
  etcd: 'APISIX keeps its configuration in etcd: holders are written through the Admin API',
  standalone: 'APISIX is in API-driven standalone mode: nothing is ever written'
}

/** Detects the mode of APISIX now, and again after each pause of `EVERY_MS`. */
export function watchMode({ admin, clock, log }: ModeWatchOptions): ModeWatch {
  const listeners = createListeners()
  const ended = new AbortController()
  let state: ModeState = { mode: undefined, problem: '' }
  let tries = 0
  let cancel = () => {}

  const learn = (mode: Mode, why: string): void => {
    if (mode !== 'etcd' && mode !== 'standalone') {
      state = { ...state, problem: why }
      return
    }
    const before = state.mode
    state = { ...state, mode, problem: '' }
    if (mode === before) return
    const facts = { mode, ...(before && { before }) }
    if (before) log.warn(facts, `the mode has changed: ${WRITTEN[mode]}`)
    else log.info(facts, WRITTEN[mode])
    listeners.notify()
  }
  const look = async (): Promise<void> => {
    const { mode, why } = await detectMode(admin, ended.signal)
    if (ended.signal.aborted) return
    learn(mode, why)
    tries += 1
    const pause = state.mode === undefined ? doubled(EVERY_MS, tries - 1) : EVERY_MS.known
    cancel = clock.alarm(clock.now() + pause, () => void look())
  }

  void look()

  return {
    current: () => state,
    onChange: listener => listeners.add(listener),
    stop() {
      ended.abort(new Error('the agent is stopping'))
      cancel()
    }
  }
}
