import type { Logger } from 'pino'

import type { Clock } from '../clock.ts'
import type { Millis } from '../drain/facts.ts'
import type { Holder, HolderKey, Resource } from '../plan/holder.ts'
import type { AdminApi, AdminObject } from './admin-api.ts'

/** Every holder there is, as last read. Reading never waits; `refresh` is the only call that does. */
export interface Inventory {
  /** Lists once now and then every `everyMs` after the last listing. */
  start(): void
  /**
   * Resolves when a listing that BEGAN after this call has ended, complete or not (see `problem`). Calls during a
   * listing share the next one.
   */
  refresh(): Promise<void>
  holders(): ReadonlyMap<HolderKey, Holder>
  /** The holders that list this host (no brackets), whatever the port. */
  byHost(host: string): readonly Holder[]
  /** When the listing that everything here rests on BEGAN (of the resource that is furthest behind); undefined before the first complete one. */
  readAt(): Millis | undefined
  /** Why some of this is older than it should be, or empty. */
  problem(): string
  /** Takes in one object as just read (the writer's read-back), unless something newer is known. */
  learn(object: AdminObject): void
  /** The object is gone (404). */
  forget(resource: Resource, id: string): void
  /** `changed` after every change of holders, readAt or problem. Returns what ends it. */
  onChange(listener: () => void): () => void
  stop(): Promise<void>
}

export interface InventoryOptions {
  readonly admin: AdminApi
  readonly clock: Clock
  readonly log: Logger
  /** From the end of one full listing to the next, in ms. */
  readonly everyMs: number
}

export declare function createInventory(options: InventoryOptions): Inventory
