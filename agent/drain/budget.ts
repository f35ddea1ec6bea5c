import type { Millis, PodFact } from './facts.ts'
import type { DrainSettings } from './seen.ts'

export declare function deadlineOf(
  pod: PodFact,
  since: Millis,
  settings: Pick<DrainSettings, 'reserveMs' | 'maxHoldMs'>
): Millis

/** What `doctor` says about a pod's budget; empty where all is well. `needMs`: the longest a weak grade has to be waited for. */
export declare function budgetProblems(
  pod: PodFact,
  settings: Pick<DrainSettings, 'reserveMs' | 'maxHoldMs'> & { readonly needMs?: number }
): string[]
