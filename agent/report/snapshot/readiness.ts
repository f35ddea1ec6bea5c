/** A part that is not ready yet, and the reason. */
export interface MissingPart {
  readonly part: string
  readonly why: string
}

/** One part reports here that it is ready, or why it is not ready. */
interface ReadinessPart {
  ready(): void
  notReady(why: string): void
}

/** The agent is ready while every registered part reports that it is ready. */
export interface Readiness {
  /** Registers a part, which is not ready at first. A second call with the same name returns the same part. */
  part(name: string): ReadinessPart
  /** In the order of registration; empty means ready. */
  missing(): readonly MissingPart[]
}

export function createReadiness(): Readiness {
  const reasons = new Map<string, string | undefined>()
  return {
    part(name) {
      if (!reasons.has(name)) reasons.set(name, 'has not reported yet')
      return {
        ready: () => void reasons.set(name, undefined),
        notReady: why => void reasons.set(name, why)
      }
    },
    missing: () => [...reasons].flatMap(([part, why]) => (why === undefined ? [] : [{ part, why }]))
  }
}
