/** `metadata.resourceVersion`: a decimal number that grows over the whole cluster (comparable by contract since 1.35). */
export type Revision = string

const DECIMAL = /^[1-9][0-9]*$/

/**
 * Whether `a` is later than `b`. They are compared as text, so no precision is lost. False if one of them is not a number: their order is
 * then unknown, so the caller does not conclude that the server went back in time.
 */
export function isLater(a: Revision | undefined, b: Revision | undefined): boolean {
  if (a === undefined || b === undefined || !DECIMAL.test(a) || !DECIMAL.test(b)) return false
  return a.length === b.length ? a > b : a.length > b.length
}
