import { readFileSync } from 'node:fs'
import { LineCounter, parseDocument, stringify } from 'yaml'
import { contradictions, schemaProblems } from './problems.ts'
import { resolve, type Config } from './config.ts'
import { schema, type Settings } from './schema/schema.ts'

/** A configuration, or all of its problems. `settings` is what `printConfig` prints. */
type Loaded =
  | { readonly ok: true; readonly config: Config; readonly settings: Settings }
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * The checked configuration in a file; without `path`, in the file that APISIX_DRAIN_CONFIG names. The flag `dryRun` of the command line
 * turns on `drain.dryRun`.
 */
export function loadConfig(
  path = process.env['APISIX_DRAIN_CONFIG'],
  { dryRun = false }: { readonly dryRun?: boolean } = {}
): Loaded {
  const problems: string[] = []
  const tree = readTree(path, problems)
  // An unreadable file would seem to lack many settings, which would hide the real problem.
  if (problems.length > 0) return { ok: false, problems }
  const parsed = schema.safeParse(tree)
  if (!parsed.success) {
    return { ok: false, problems: schemaProblems(parsed.error.issues) }
  }
  if (dryRun) parsed.data.drain.dryRun = true
  problems.push(...contradictions(parsed.data))
  if (problems.length > 0) return { ok: false, problems }
  const config = resolve(parsed.data, problems)
  return problems.length > 0
    ? { ok: false, problems }
    : { ok: true, config: deepFreeze(config), settings: parsed.data }
}

/** The configuration as YAML, with every default. It names the files of secrets, and holds none. */
export const printConfig = ({ settings }: Extract<Loaded, { ok: true }>): string => stringify(settings)

function readTree(path: string | undefined, problems: string[]): Record<string, unknown> {
  if (path === undefined) {
    problems.push('no configuration is given: name its file with --config or in APISIX_DRAIN_CONFIG')
    return {}
  }
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (err) {
    problems.push(`${path}: cannot be read (${(err as NodeJS.ErrnoException).code}); check --config`)
    return {}
  }
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  for (const error of document.errors) {
    const { line, col } = lines.linePos(error.pos[0])
    problems.push(`${path}:${line}:${col}: is no YAML: ${error.message}`)
  }
  if (document.errors.length > 0) return {}
  try {
    const tree: unknown = document.toJS()
    if (tree === null) return {}
    if (typeof tree === 'object' && !Array.isArray(tree)) return withoutEmpty(tree as Record<string, unknown>)
  } catch (err) {
    problems.push(
      `${path}: cannot be read: ${(err as Error).message}; write its parts out instead of aliases`
    )
    return {}
  }
  problems.push(`${path}: must hold sections such as apisix: and drain:`)
  return {}
}

/** The tree without null values. If every line of a section is a comment, YAML reads the section as null; its defaults then apply. */
function withoutEmpty(tree: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept = Object.entries(tree).filter(([, value]) => value !== null)
  return Object.fromEntries(
    kept.map(([key, value]) =>
      typeof value === 'object' && !Array.isArray(value)
        ? [key, withoutEmpty(value as Record<string, unknown>)]
        : [key, value]
    )
  )
}

/** Freezes a value at every depth. Parts that are frozen already are skipped, so unchanged parts cost nothing. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const child of Object.values(value)) deepFreeze(child)
  }
  return value
}
