/**
 * Small readers for JSON of unknown shape. They never throw: a field that is missing or of another type reads as absent. They are
 * written by hand, because a schema library takes more time per pod than all other code (10,000 pods at once).
 */

export type Fields = Readonly<Record<string, unknown>>

const NO_FIELDS: Fields = Object.freeze({})

/** The fields of `T`. Each may be absent or of another type, because the JSON comes unchecked from the server. */
export type FieldsOf<T extends object> = Readonly<Record<keyof T, unknown>>

/**
 * The value if it is an object, else an object without fields.
 *
 * @typeParam T a model of @kubernetes/client-node, which only names the fields: the value is not checked against it
 */
export function fieldsOf<T extends object = Fields>(value: unknown): FieldsOf<T> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return (isObject ? value : NO_FIELDS) as FieldsOf<T>
}

/** The value if it is a list, else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The value if it is a string, and not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The value if it is a finite number. */
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

/** Whether `status.conditions` has this type with status "True". */
export function conditionIsTrue(conditions: unknown, type: string): boolean {
  for (const condition of listOf(conditions)) {
    const { type: name, status } = fieldsOf(condition)
    if (name === type) return status === 'True'
  }
  return false
}
