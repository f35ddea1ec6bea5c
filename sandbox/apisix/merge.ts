import { isObject, type Json, type JsonObject } from './json.ts'

/** Lua has one kind of table: an empty one counts as an array, even if it was written as a map. */
const isMap = (value: Json | undefined): value is JsonObject =>
  isObject(value) && Object.keys(value).length > 0

const isTable = (value: Json | undefined): value is JsonObject | Json[] =>
  Array.isArray(value) || isObject(value)

/**
 * APISIX's merge patch (`core.table.merge`), traps included. Two maps are merged. If either value is an array, the new one
 * replaces the old one whole, so `{"nodes": {}}` wipes a map. A `null` deletes a key only inside a merge. In a value that
 * replaces another one, the `null` is stored as it is, and the schema then refuses it.
 */
export function mergePatch(old: JsonObject, patch: JsonObject | Json[]): JsonObject {
  const merged: JsonObject = { ...old }
  for (const [key, value] of patchEntries(patch)) {
    const before = merged[key]
    if (value === null) delete merged[key]
    else if (isMap(before) && isMap(value)) merged[key] = mergePatch(before, value)
    else merged[key] = value
  }
  return merged
}

export type SubPathPatch =
  { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly problem: string }

/**
 * `PATCH /upstreams/web/nodes/10.0.0.1:80` (`core.table.patch`): sets the value at the path, and creates missing maps.
 * It cannot reach an array element, since the path's parts are strings. The result is then a mixed table, which no schema accepts.
 */
export function patchAt(old: JsonObject, path: readonly string[], value: Json): SubPathPatch {
  const [name, ...rest] = path
  if (name === undefined || name === '') return { ok: true, value }
  if (rest.length === 0) return { ok: true, value: { ...old, [name]: value } }
  const inner = old[name] ?? {}
  if (!isTable(inner)) return { ok: false, problem: `invalid sub-path: /${name}` }
  const patched = patchAt(asMap(inner), rest, value)
  return patched.ok ? { ok: true, value: { ...old, [name]: patched.value } } : patched
}

const patchEntries = (patch: JsonObject | Json[]): [string, Json][] => Object.entries(asMap(patch))

const asMap = (table: JsonObject | Json[]): JsonObject =>
  Array.isArray(table) ? Object.fromEntries(table.map((value, index) => [String(index + 1), value])) : table
