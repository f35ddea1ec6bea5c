/** A part that is not ready yet, and what it is waiting for. */
export interface MissingPart {
  readonly part: string
  readonly why: string
}

/** One part's own switch. */
interface ReadinessPart {
  ready(): void
  notReady(why: string): void
}

/** Ready: every part reported it. A registered part that has not reported yet is missing. */
export interface Readiness {
  /** Registers a part, not ready at first. The same name gives the same part again. */
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
