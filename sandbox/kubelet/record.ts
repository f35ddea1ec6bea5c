import type { Arrival } from '../app/report.ts'
import type { HookRecord } from './hook.ts'

/** The history of one pod, as its host saw it. All times by `now()`; `undefined`: not yet. */
export interface PodRecord {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly ip: string
  startedAt: number
  readyAt: number | undefined
  deletionSeenAt: number | undefined
  hookStartedAt: number | undefined
  readonly hooks: HookRecord[]
  termAt: number | undefined
  readonly exits: {
    readonly container: string
    readonly at: number
    readonly code: number | null
    readonly signal: NodeJS.Signals | null
  }[]
  /** When its object was deleted and its processes had ended. */
  goneAt: number | undefined
  /** Every request that reached the app, in order. */
  readonly arrivals: Arrival[]
  /** When the app's last request was over. */
  answeredAt: number
  restarts: number
}

export const newRecord = (
  identity: Pick<PodRecord, 'uid' | 'namespace' | 'name' | 'ip' | 'startedAt'>
): PodRecord => ({
  ...identity,
  readyAt: undefined,
  deletionSeenAt: undefined,
  hookStartedAt: undefined,
  hooks: [],
  termAt: undefined,
  exits: [],
  goneAt: undefined,
  arrivals: [],
  answeredAt: 0,
  restarts: 0
})
