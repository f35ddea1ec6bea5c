import { isObject, type Json, type JsonObject } from './json.ts'

/** Lua has one kind of table: an empty one counts as an array, even if it was written as a map. */
const isMap = (value: Json | undefined): value is JsonObject =>
  isObject(value) && Object.keys(value).length > 0

/**
 * APISIX's merge patch (`core.table.merge`), even where it surprises. Two maps are merged. If either value is an array, the new one
 * replaces the old one whole, so `{"nodes": {}}` wipes a map. A `null` deletes a key only inside a merge. In a value that
 * replaces another one, the `null` is stored as it is, and the schema then refuses it.
 */
export function mergePatch(old: JsonObject, patch: JsonObject): JsonObject {
  const merged: JsonObject = { ...old }
  for (const [key, value] of Object.entries(patch)) {
    const before = merged[key]
    if (value === null) delete merged[key]
    else if (isMap(before) && isMap(value)) merged[key] = mergePatch(before, value)
    else merged[key] = value
  }
  return merged
}

type SubPathPatch =
  { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly problem: string }

/**
 * `PATCH /upstreams/web/nodes/10.0.0.1:80` (`core.table.patch`): sets the value at the path, and creates missing maps.
 * The path cannot reach an array element, since its parts are strings. The result is then a mixed table, which no schema accepts.
 */
export function patchAt(old: JsonObject, path: readonly string[], value: Json): SubPathPatch {
  const [name, ...rest] = path
  if (name === undefined || name === '') return { ok: true, value }
  if (rest.length === 0) return { ok: true, value: { ...old, [name]: value } }
  const inner = asMap(old[name] ?? {})
  if (!inner) return { ok: false, problem: `invalid sub-path: /${name}` }
  const patched = patchAt(inner, rest, value)
  if (patched.ok) return { ok: true, value: { ...old, [name]: patched.value } }
  return { ok: false, problem: patched.problem.replace('/', `/${name}/`) }
}

/** A table as Lua reads it: an array is a map with the keys 1, 2, and so on. `undefined` for any other value. */
export const asMap = (value: Json | undefined): JsonObject | undefined => {
  if (!Array.isArray(value)) return isObject(value) ? value : undefined
  return Object.fromEntries(value.map((item, index) => [String(index + 1), item]))
}
