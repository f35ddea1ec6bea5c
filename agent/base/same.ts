/** Deep equality of plain objects, arrays and scalars. An absent field equals `undefined`. Two references to one object cost nothing. */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item: unknown, i) => same(item, b[i]))
  }
  const left = a as Readonly<Record<string, unknown>>
  const right = b as Readonly<Record<string, unknown>>
  for (const key in left) if (!same(left[key], right[key])) return false
  for (const key in right) if (!(key in left) && right[key] !== undefined) return false
  return true
}
