export type Json = null | boolean | number | string | Json[] | JsonObject
export interface JsonObject {
  [key: string]: Json
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An id or a host as text; empty for any other type. */
export const asText = (value: Json | undefined): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

type ParsedJson =
  { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly problem: string }

/** Parses `text`. A problem has lua-cjson's words, because APISIX passes those on to its client. */
export function parseJson(text: string): ParsedJson {
  try {
    return { ok: true, value: JSON.parse(text) as Json }
  } catch (err) {
    const found = /at position (\d+)/.exec(String(err))
    const at = found ? Number(found[1]) : text.length
    const what = at < text.length ? 'invalid token' : 'T_END'
    const before = text.slice(0, at).trimEnd().at(-1)
    const expected = before === '{' || before === ',' ? 'object key string' : 'value'
    return { ok: false, problem: `Expected ${expected} but found ${what} at character ${at + 1}` }
  }
}
