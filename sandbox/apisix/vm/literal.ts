import { isObject } from '../json.ts'

const text = (value: string): string =>
  `"${value.replaceAll(/["\\]|[^\P{Cc}\u0080-\u009f]/gu, char => `\\${String(char.charCodeAt(0)).padStart(3, '0')}`)}"`

/** A JSON value as a Lua expression. `N` stands for null. Empty lists and empty objects are the same in Lua. */
export function luaLiteral(value: unknown): string {
  if (typeof value === 'string') return text(value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return `{${value.map(luaLiteral).join(',')}}`
  if (!isObject(value)) return 'N'
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  return `{${fields.map(([name, field]) => `[${text(name)}]=${luaLiteral(field)}`).join(',')}}`
}
