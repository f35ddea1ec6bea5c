import { dirname, join } from 'node:path'

const IMPORT = /^(?:import|export)\b[^'"]*?['"](\.[^'"]+)['"]|\bimport\(\s*['"](\.[^'"]+)['"]/gm

/** Returns the files of this project that a source file imports, type imports included. Paths have the same form as `path`. */
export const importsOf = (path: string, source: string): readonly string[] =>
  [...source.matchAll(IMPORT)].map(([, from, dynamic]) => join(dirname(path), from ?? dynamic ?? ''))

/** Returns the circles of imports, over any number of steps: each circle once, as a list of its files. */
export function circles(imports: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const reach = (from: string): ReadonlySet<string> => {
    const seen = new Set<string>()
    const open = [...(imports.get(from) ?? [])]
    for (let next = open.pop(); next !== undefined; next = open.pop())
      if (!seen.has(next)) {
        seen.add(next)
        open.push(...(imports.get(next) ?? []))
      }
    return seen
  }
  const all = new Map([...imports.keys()].map(file => [file, reach(file)]))
  const known = new Set<string>()
  return [...all].flatMap(([file, reached]) => {
    if (known.has(file) || !reached.has(file)) return []
    const circle = [...reached].filter(other => all.get(other)?.has(file)).toSorted()
    for (const one of circle) known.add(one)
    return [circle]
  })
}
