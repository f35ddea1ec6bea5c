import { readFileSync } from 'node:fs'
import type { LuaEdit } from './mutant-list.ts'

const PLUGIN = new URL('../../plugin-config/apisix/drain/', import.meta.url)

/** The text of the plugin's file after the edit. Throws if the file does not have `from` exactly once. */
export function replaceInLua({ file, from, to }: LuaEdit): string {
  const parts = readFileSync(new URL(file, PLUGIN), 'utf8').split(from)
  if (parts.length !== 2) throw new Error(`${file}: ${from} is there ${parts.length - 1} times`)
  return parts.join(to)
}
