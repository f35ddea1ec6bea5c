/**
 * Narrow readers for JSON of unknown shape. Each is total: a missing field, or one of another type, reads as absent, and
 * nothing throws. Hand-written because a schema library costs more per pod than all the rest (10,000 pods at once).
 */

export type Fields = Readonly<Record<string, unknown>>

const NO_FIELDS: Fields = Object.freeze({})

/** The fields that `T` has. Each may be absent or of another type: the JSON is as the server sent it. */
export type FieldsOf<T extends object> = Readonly<Record<keyof T, unknown>>

/** @typeParam T the model of @kubernetes/client-node, which names the fields and checks nothing */
export function fieldsOf<T extends object = Fields>(value: unknown): FieldsOf<T> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return (isObject ? value : NO_FIELDS) as FieldsOf<T>
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** A whole number that can be a TCP port. */
export function portOf(value: unknown): number | undefined {
  const port = numberOf(value)
  return port !== undefined && Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
}

/** RFC 3339 text as ms since the epoch. */
export function timeOf(value: unknown): number | undefined {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}

/** Condition `type` of `status.conditions` has status "True". */
export function conditionIsTrue(conditions: unknown, type: string): boolean {
  for (const condition of listOf(conditions)) {
    const { type: name, status } = fieldsOf(condition)
    if (name === type) return status === 'True'
  }
  return false
}
