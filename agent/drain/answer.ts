import type { Ack } from './ack.ts'
import type { Drain, Hook } from './drain.ts'
import type { Millis } from './facts.ts'
import type { DrainSettings, Seen } from './seen.ts'

/** Either the answer, or: ask again at `until` at the latest, or as soon as something changes. */
export type Answer =
  | { readonly kind: 'ack'; readonly ack: Ack }
  | { readonly kind: 'wait'; readonly until: Millis; readonly why: string }

/** What a held hook is told now. */
export declare function answer(
  hook: Hook,
  drain: Drain | undefined,
  seen: Seen,
  now: Millis,
  settings: DrainSettings
): Answer
