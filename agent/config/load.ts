import { readFileSync } from 'node:fs'
import { LineCounter, parseDocument, stringify, parse } from 'yaml'
import {
  contradictions,
  schemaProblems,
  nearest,
  configRows,
  ENV_PREFIX,
  type ConfigRow
} from './problems.ts'
import { resolve, type Config, type Env } from './config.ts'
import { schema, type Settings } from './schema/schema.ts'

/** A configuration, or all of its problems. `settings` is what `printConfig` prints. */
type Loaded =
  | { readonly ok: true; readonly config: Config; readonly settings: Settings }
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * The checked configuration: the file, overridden by the environment. Without `path`, APISIX_DRAIN_CONFIG names the file. Without
 * that variable, only the environment counts. The flag `dryRun` of the command line turns on `drain.dryRun`. Only this part of
 * the agent reads `process.env`.
 */
export function loadConfig(
  path: string | undefined,
  env: Env = process.env,
  { dryRun = false }: { readonly dryRun?: boolean } = {}
): Loaded {
  const problems: string[] = []
  const fromFile = readTree(path ?? env[CONFIG_FILE_ENV], problems)
  // An unreadable file would seem to lack many settings, which would hide the real problem.
  if (problems.length > 0) return { ok: false, problems }
  const merged = applyEnv(fromFile, env, secretVariables(fromFile))
  // A variable may itself name the variable of a secret (…_KEY_ENV), so the names are collected again from the merged tree.
  const { tree, problems: envProblems } = applyEnv(fromFile, env, secretVariables(merged.tree))
  problems.push(...envProblems)
  const parsed = schema.safeParse(tree)
  if (!parsed.success) {
    return { ok: false, problems: [...problems, ...schemaProblems(parsed.error.issues)] }
  }
  if (dryRun) parsed.data.drain.dryRun = true
  problems.push(...contradictions(parsed.data))
  if (problems.length > 0) return { ok: false, problems }
  const config = resolve(parsed.data, env, problems)
  return problems.length > 0
    ? { ok: false, problems }
    : { ok: true, config: deepFreeze(config), settings: parsed.data }
}

/** The configuration as YAML, with every default; a secret is replaced by its source. */
export function printConfig({ config, settings }: Extract<Loaded, { ok: true }>): string {
  const { keyFile: _file, keyEnv: _env, ...admin } = settings.apisix.admin
  const { barrier } = settings.apisix
  const { tokenFile: _tokenFile, tokenEnv: _tokenEnv, ...shownBarrier } = barrier ?? {}
  const { gateways } = config.apisix
  const { tokenFile: _dashboardFile, tokenEnv: _dashboardEnv, ...dashboard } = settings.serve.dashboard
  const access = config.serve.dashboard?.auth
  return stringify({
    ...settings,
    apisix: {
      admin: { ...admin, key: config.apisix.admin.key.source },
      control: settings.apisix.control,
      ...(barrier && { barrier: { ...shownBarrier, token: config.apisix.barrier?.token.source } }),
      gateways:
        gateways.kind === 'static'
          ? { static: gateways.gateways }
          : { ...(gateways.namespace && { namespace: gateways.namespace }), selector: gateways.selector }
    },
    serve: {
      ...settings.serve,
      dashboard: { ...dashboard, ...(access?.kind === 'token' && { token: access.token.source }) }
    }
  })
}

function readTree(path: string | undefined, problems: string[]): Record<string, unknown> {
  if (path === undefined) return {}
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
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const child of Object.values(value)) deepFreeze(child)
  }
  return value
}

export /** The variable with the path of the configuration file. Its name has the prefix of the settings, but it is not a setting. */
const CONFIG_FILE_ENV = `${ENV_PREFIX}CONFIG`

/**
 * Whether Kubernetes set this variable for a Service of the namespace. A Service named `apisix-drain` gives
 * APISIX_DRAIN_SERVICE_HOST, APISIX_DRAIN_PORT=tcp://…, APISIX_DRAIN_PORT_8080_TCP_ADDR. None of them is a setting of the agent.
 */
function isServiceLink(name: string, value: string): boolean {
  return (
    /^(tcp|udp|sctp):\/\//.test(value) ||
    /_SERVICE_(HOST|PORT)(_|$)/.test(name) ||
    /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name)
  )
}

const settings = new Map(configRows.filter(row => !row.section).map(row => [row.env, row]))

/**
 * The tree of the file, overridden by the environment. `secretNames` are the variables that `keyEnv` and `tokenEnv` name. They are
 * not settings, even if they have the agent's prefix.
 */
function applyEnv(
  tree: Readonly<Record<string, unknown>>,
  env: Env,
  secretNames: ReadonlySet<string>
): { tree: Record<string, unknown>; problems: readonly string[] } {
  const result = structuredClone(tree) as Record<string, unknown>
  const problems: string[] = []
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || !name.startsWith(ENV_PREFIX) || name === CONFIG_FILE_ENV) continue
    const row = settings.get(name)
    if (row && !/^(tcp|udp|sctp):\/\//.test(value)) set(result, row, value)
    else if (!row && !secretNames.has(name) && !isServiceLink(name, value)) problems.push(unknown(name))
  }
  return { tree: result, problems }
}

/** The names of the variables that hold secrets: the values of `keyEnv` and `tokenEnv` in the tree. */
function secretVariables(tree: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (at: unknown) => {
    if (typeof at !== 'object' || at === null) return
    for (const [key, value] of Object.entries(at)) {
      if (/^(key|token)Env$/.test(key) && typeof value === 'string') found.add(value)
      visit(value)
    }
  }
  visit(tree)
  return found
}

function unknown(name: string): string {
  const meant = nearest(name, [...settings.keys()])
  return `environment variable ${name}: no such setting${meant ? `, did you mean ${meant}?` : ''}`
}

function set(tree: Record<string, unknown>, row: ConfigRow, value: string): void {
  let at = tree
  for (const name of row.path.slice(0, -1)) {
    const next = at[name]
    at = typeof next === 'object' && next !== null ? (next as typeof at) : (at[name] = {})
  }
  at[row.path.at(-1) ?? ''] = read(row, value)
}

/** Keeps a string as it is, splits a list at its commas, and reads anything else as YAML. The schema refuses an unreadable value. */
function read(row: ConfigRow, value: string): unknown {
  if (row.type === 'string') return value
  if (row.type === 'list' && !value.trim().startsWith('[')) {
    return value
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
  }
  try {
    return parse(value) as unknown
  } catch {
    return value
  }
}
