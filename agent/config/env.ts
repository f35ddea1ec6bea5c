import { parse } from 'yaml'
import { nearest } from './problems.ts'
import { configRows, ENV_PREFIX, type ConfigRow } from './schema/rows.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** The variable with the path of the configuration file. Its name has the prefix of the settings, but it is not a setting. */
export const CONFIG_FILE_ENV = `${ENV_PREFIX}CONFIG`

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
export function applyEnv(
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
export function secretVariables(tree: unknown): ReadonlySet<string> {
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
