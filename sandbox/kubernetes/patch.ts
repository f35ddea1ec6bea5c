type Fields = Record<string, unknown>

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** RFC 7396. Pure: the target stays unchanged. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch
  const merged: Fields = isFields(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete merged[key]
    else merged[key] = mergePatch(merged[key], value)
  return merged
}
