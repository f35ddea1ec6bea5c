/** The label of gateways without a series of their own. */
export const OTHER = 'other'
/** How many gateways have series of their own at a time. */
export const MOST = 20

/** The values of the label `gateway`. Their number is bounded, although each rollout of gateways brings new names. */
interface GatewayNames {
  /** The gateways that exist now. A name that is gone keeps its series until a new one needs the place. */
  keep(present: readonly string[]): void
  /** The name itself, or `other` if all places are taken. */
  labelOf(name: string): string
}

/** `begin` and `forget` are called when a name gets a place, and when it loses its place. */
export function createGatewayNames(
  begin: (name: string) => void,
  forget: (name: string) => void
): GatewayNames {
  const named = new Set<string>()
  let existing: ReadonlySet<string> = new Set()
  let shared = false

  const hasRoom = (): boolean => {
    if (named.size < MOST) return true
    const gone = [...named].find(name => !existing.has(name))
    if (gone === undefined) return false
    named.delete(gone)
    forget(gone)
    return true
  }
  const labelOf = (name: string): string => {
    if (named.has(name)) return name
    if (!hasRoom()) {
      // Only if there are more gateways than places: otherwise it would be an empty series in every scrape.
      if (!shared) begin(OTHER)
      shared = true
      return OTHER
    }
    named.add(name)
    begin(name)
    return name
  }

  return {
    keep(present) {
      existing = new Set(present)
      for (const name of present) labelOf(name)
    },
    labelOf
  }
}
