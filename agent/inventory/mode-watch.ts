import type { Logger } from 'pino'

import type { Clock } from '../base/clock.ts'
import { createListeners } from '../base/listeners.ts'
import type { AdminApi } from '../apisix/admin-api.ts'
import { detectMode, type Mode } from './mode.ts'
import { doubled } from '../drain/times.ts'

/** What is known of how this APISIX is run. */
export interface ModeState {
  /** `undefined`: it could not be found out yet. */
  readonly mode: 'etcd' | 'standalone' | undefined
  /** How it is known: by the configuration, or by what the Admin API answered. */
  readonly by: 'config' | 'admin-api'
  /** Why it could not be found out at the last try, or empty. */
  readonly problem: string
}

/** Finds out the mode, and notices when it changes: an APISIX can be installed anew behind the same Service. */
export interface ModeWatch {
  current(): ModeState
  /** After every change. Returns what ends it. */
  onChange(listener: () => void): () => void
  stop(): void
}

interface ModeWatchOptions {
  readonly admin: Pick<AdminApi, 'standalone'>
  readonly clock: Clock
  readonly log: Logger
  /** Set by configuration: nothing is detected. */
  readonly forced?: 'etcd' | 'standalone' | undefined
}

/** Between two looks, in ms: until it is known (doubled each time), and after that. */
const EVERY_MS = { first: 500, longest: 10_000, known: 30_000 }

const WRITTEN: Readonly<Record<'etcd' | 'standalone', string>> = {
  etcd: 'APISIX keeps its configuration in etcd: holders are written through the Admin API',
  standalone: 'APISIX is in API-driven standalone mode: nothing is ever written'
}

export function watchMode({ admin, clock, log, forced }: ModeWatchOptions): ModeWatch {
  const listeners = createListeners()
  const ended = new AbortController()
  let state: ModeState = { mode: forced, by: forced ? 'config' : 'admin-api', problem: '' }
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
    listeners.tell()
  }
  const look = async (): Promise<void> => {
    const { mode, why } = await detectMode(admin, ended.signal)
    if (ended.signal.aborted) return
    learn(mode, why)
    tries += 1
    const pause = state.mode === undefined ? doubled(EVERY_MS, tries - 1) : EVERY_MS.known
    cancel = clock.alarm(clock.now() + pause, () => void look())
  }

  if (forced) {
    log.info({ mode: forced, by: 'config' }, WRITTEN[forced])
  } else void look()

  return {
    current: () => state,
    onChange: listener => listeners.add(listener),
    stop() {
      ended.abort(new Error('the agent is stopping'))
      cancel()
    }
  }
}
