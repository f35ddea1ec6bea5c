import type { Drain, Verdict } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import type { BarrierReading, Evidence, ProofSettings } from './evidence.ts'

/** What the evidence amounts to. The pod's own minimum (annotation) goes before the configured one. */
export declare function prove(
  evidence: Evidence,
  drain: Pick<Drain, 'since' | 'deadline' | 'pod'>,
  now: Millis,
  settings: ProofSettings
): Verdict

/** The chance (0 to 1) that one stale worker would have been seen. */
export declare function confidence(reads: number, workers: number): number

export type Sealable =
  { readonly seal: true; readonly why: string } | { readonly seal: false; readonly why: string }

/** Whether the entry of a drain may be sealed at one gateway now. `before`: the look before this one. */
export declare function sealable(
  look: { readonly before: BarrierReading | undefined; readonly current: BarrierReading | undefined },
  drain: Pick<Drain, 'deadline'>,
  lastEndpoint: boolean,
  now: Millis,
  settings: { readonly sealBeforeMs: number; readonly waitForInflight: boolean }
): Sealable
