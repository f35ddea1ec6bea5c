/** `metadata.resourceVersion`: a decimal number that grows over the whole cluster (comparable by contract since 1.35). */
export type Revision = string

const DECIMAL = /^[1-9][0-9]*$/

/**
 * Whether `a` is later than `b`. Compared as text, so no precision is lost. False if one of them is not a number. The order is then
 * unknown, and the server does not count as having gone back in time.
 */
export function isLater(a: Revision | undefined, b: Revision | undefined): boolean {
  if (a === undefined || b === undefined || !DECIMAL.test(a) || !DECIMAL.test(b)) return false
  return a.length === b.length ? a > b : a.length > b.length
}
