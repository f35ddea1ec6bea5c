import { isExpired, isFromTheFuture } from '../transport/api-error.ts'
import type { Revision } from './revision.ts'

/** The next step of a reflector. A list must show at least the revision `from`, if there is one. */
type Step = { readonly does: 'watch' } | { readonly does: 'list'; readonly from: Revision | undefined }

/** Decides whether to list or to watch. The only owner of that state. */
interface NextStep {
  step(): Step
  /** The list is complete. */
  listed(): void
  /** The watch has sent an event. */
  heard(): void
  /** @param at the revision that the watch has reached */
  failed(error: unknown, at: Revision | undefined): void
}

/** After this many consecutive failures without a single event, everything is listed again. */
const FRUITLESS = 3

/** The watch is live, and another source contradicts it. */
export class Doubted extends Error {
  override readonly name = 'Doubted'
}

export function createNextStep(): NextStep {
  let next: Step = { does: 'list', from: undefined }
  let fruitless = 0
  return {
    step: () => next,
    listed: () => void (next = { does: 'watch' }),
    heard: () => void (fruitless = 0),
    failed(error, at) {
      const isOutdated = isExpired(error) || isFromTheFuture(error)
      fruitless += 1
      if (error instanceof Doubted || isFromTheFuture(error)) next = { does: 'list', from: undefined }
      else if (next.does === 'list') next = isOutdated ? { does: 'list', from: undefined } : next
      else if (isOutdated || fruitless >= FRUITLESS) next = { does: 'list', from: at }
    }
  }
}
