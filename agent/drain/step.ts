import type { Drain } from './drain.ts'
import type { Millis } from './facts.ts'
import type { DrainSettings, Seen } from './seen.ts'

/** The drain of a pod that ends; `undefined` where nothing says that it does, or it asks to be left alone. */
export declare function begin(seen: Seen, now: Millis, settings: DrainSettings): Drain | undefined

/** The drain one round later; `undefined` = forget it. */
export declare function step(
  drain: Drain,
  seen: Seen,
  now: Millis,
  settings: DrainSettings
): Drain | undefined
