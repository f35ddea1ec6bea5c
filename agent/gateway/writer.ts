import type { Logger } from 'pino'

import type { Clock } from '../clock.ts'
import type { Millis, NodeKey, PodUid } from '../drain/facts.ts'
import type { Change } from '../plan/change.ts'
import type { Holder, HolderKey } from '../plan/holder.ts'
import type { AdminApi } from './admin-api.ts'
import type { Inventory } from './inventory.ts'

/** What has become of one removal. Names as in HolderReport. */
export interface WriteStatus {
  readonly state: 'writing' | 'removed' | 'kept-last' | 'failed'
  /** When the removal was accepted and read back; only with `removed`. */
  readonly acceptedAt: Millis | undefined
  /** For an operator; empty where there is nothing to say. */
  readonly why: string
}

/** Carries out removals. `submit` never waits; what became of it is in `status`. */
export interface Writer {
  /** Idempotent: what is already waiting or on its way is not queued again; after a failure it is tried again after a pause. */
  submit(change: Change): void
  status(holder: HolderKey, node: NodeKey, uid: PodUid): WriteStatus | undefined
  /** The drain is over: drop what is known about its removals. */
  forget(uid: PodUid): void
  /** After every change of a status. Returns what ends it. */
  onChange(listener: () => void): () => void
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>
  /** Gives up what waits, ends what is under way. */
  stop(): Promise<void>
}

export interface WriterOptions {
  readonly admin: AdminApi
  readonly inventory: Pick<Inventory, 'learn' | 'forget'>
  readonly clock: Clock
  readonly log: Logger
  /** Objects written at the same time; default 8. */
  readonly concurrency?: number
  /** How long one removal is retried before it is reported as failed, in ms; default 10 000. */
  readonly giveUpMs?: number
  /** A second opinion on which nodes a holder should list besides (ready endpoints), to put back what our write of an array overwrote. */
  readonly expected?: (holder: Holder) => readonly NodeKey[]
}

export declare function createWriter(options: WriterOptions): Writer
