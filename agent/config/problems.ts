import { z } from 'zod'
import { formatDuration, parseDuration } from '../rules/drain/annotations.ts'
import { CHART_SELECTOR, schema, type Settings } from './schema/schema.ts'

type Issue = z.core.$ZodIssue

/**
 * The problems that the schema found, one line each: the setting, the problem, and what there is instead. Values are not shown,
 * because a value may be a secret.
 */
export function schemaProblems(issues: readonly Issue[]): string[] {
  return issues.flatMap(issue => {
    const path = issue.path.map(String)
    if (issue.code === 'unrecognized_keys') return issue.keys.map(key => unknownKey([...path, key]))
    if (issue.code === 'invalid_type' && isMissing(issue)) return [required(path)]
    return [`${path.join('.') || 'the file'}: ${readable(issue)}`]
  })
}

const isMissing = (issue: Issue) => issue.message.endsWith('received undefined')

function readable(issue: Issue): string {
  if (issue.code === 'too_small' && issue.origin !== 'string') return `must be at least ${issue.minimum}`
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}`
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  if (issue.code === 'too_small') return 'must not be empty'
  return issue.message.replace(/^Invalid input: /, '')
}

function required(path: readonly string[]): string {
  const name = path.join('.')
  const { example } = configRows.find(row => row.path.join('.') === name) ?? {}
  return `${name}: is required${example === undefined ? '' : `, such as ${JSON.stringify(example)}`}`
}

/** Keys under which users mistakenly write a secret itself. */
const INLINE: Readonly<Record<string, string>> = { key: 'keyFile', token: 'tokenFile' }

function unknownKey(path: readonly string[]): string {
  const dotted = path.join('.')
  const name = path.at(-1) ?? ''
  const parent = path.slice(0, -1).join('.')
  const siblings = configRows
    .filter(row => row.path.slice(0, -1).join('.') === parent)
    .map(row => row.path.at(-1) ?? '')
  const inline = INLINE[name]
  if (inline && siblings.includes(inline)) {
    return `${dotted}: a secret is not written into the configuration; use ${inline}`
  }
  const elsewhere = configRows.find(row => row.path.at(-1) === name)
  return `${dotted}: no such setting; ${elsewhere ? `${name} belongs to ${elsewhere.path.join('.')}` : `there are ${siblings.join(', ')}`}`
}

/** Kubernetes' default grace. Settings that leave no time for a drain within this grace are a mistake. */
const DEFAULT_GRACE_MS = 30_000

/** Problems of settings that are valid alone but contradict each other. With them, drains could not progress as configured. */
export function contradictions(settings: Settings): string[] {
  return [...times(settings), ...addresses(settings), ...ports(settings), ...secrets(settings)]
}

function times({ drain, apisix }: Settings): string[] {
  const ms = (text: string) => parseDuration(text) ?? 0
  const usable = DEFAULT_GRACE_MS - ms(drain.reserve)
  const problems: string[] = []
  if (!apisix.barrier && ms(drain.settle) >= usable) {
    problems.push(
      `drain.reserve: with drain.settle it fills the default grace of ${formatDuration(DEFAULT_GRACE_MS)}, so no removal could be proved in time; lower one of them`
    )
  }
  if (apisix.barrier && ms(apisix.barrier.ttl) % 1000 !== 0) {
    problems.push('apisix.barrier.ttl: must be whole seconds')
  }
  return problems
}

function addresses({ apisix, sync }: Settings): string[] {
  const { admin, barrier, gateways } = apisix
  const problems: string[] = []
  if (!admin && !barrier)
    problems.push('apisix.admin: is required without apisix.barrier; give its url and its keyFile')
  if (!admin && sync.allow.length > 0)
    problems.push('sync.allow: has no meaning without apisix.admin; name an Admin API or take it out')
  if (gateways.static && (gateways.namespace !== undefined || gateways.selector !== CHART_SELECTOR)) {
    problems.push('apisix.gateways: static excludes namespace and selector; keep one of the two ways')
  }
  const names = gateways.static?.map(gateway => gateway.name) ?? []
  if (new Set(names).size < names.length) problems.push('apisix.gateways.static: each name may be used once')
  if (admin && URL.canParse(admin.url)) {
    const { username, password, protocol, pathname, search, hash } = new URL(admin.url)
    if (username || password) {
      problems.push(
        'apisix.admin.url: a secret is not written into the configuration; take user and password out'
      )
    }
    if (pathname !== '/' || search || hash) {
      problems.push('apisix.admin.url: leave out everything after the port; /apisix/admin is added')
    }
    if (admin.caFile !== undefined && protocol === 'http:') {
      problems.push('apisix.admin.caFile: has no meaning for an http:// URL; use https:// or leave it out')
    }
  }
  if (barrier?.caFile !== undefined && barrier.scheme === 'http') {
    problems.push('apisix.barrier.caFile: has no meaning for scheme http; use https or leave it out')
  }
  if (barrier?.serverName !== undefined && barrier.scheme === 'http') {
    problems.push('apisix.barrier.serverName: has no meaning for scheme http; use https or leave it out')
  }
  return problems
}

function ports({ serve, inject }: Settings): string[] {
  const { port, pagePort } = serve
  const problems: string[] = []
  if (pagePort !== undefined && pagePort === port && port !== 0) {
    problems.push('serve.pagePort: is the same as serve.port; leave it out to serve everything on one port')
  }
  if (inject.file !== undefined && inject.port !== 0 && [port, pagePort].includes(inject.port)) {
    problems.push(
      'inject.port: is the same as serve.port or serve.pagePort; the webhook needs one of its own'
    )
  }
  return problems
}

function secrets({ serve: { dashboard } }: Settings): string[] {
  const { enabled, auth, tokenFile } = dashboard
  if (auth === 'none' && tokenFile !== undefined)
    return ['serve.dashboard.auth: none asks for no token; take the token out or write auth: token']
  if (enabled && auth === 'token' && tokenFile === undefined)
    return [
      'serve.dashboard.tokenFile: is required; or write auth: none where something in front of the agent asks who is there'
    ]
  return []
}

/** The part of JSON Schema that zod writes for the agent's schema. */
interface JsonSchema {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly format?: string
  readonly example?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
}

/** One setting or section, with everything that docs and messages need. */
export interface ConfigRow {
  readonly path: readonly string[]
  readonly section: boolean
  readonly type: 'string' | 'number' | 'boolean' | 'list'
  /** The allowed values, in words: `duration, 100ms to 1m`, `10 to 500`, `http, https`. */
  readonly allowed: string
  readonly description: string
  /** In its section, which may be left out. */
  readonly required: boolean
  readonly byDefault: unknown
  readonly example: unknown
}

/** Every section and setting in the order of the schema, each section before its content. */
export const configRows: readonly ConfigRow[] = walk(
  z.toJSONSchema(schema, { io: 'input' }) as unknown as JsonSchema,
  []
)

function walk(parent: JsonSchema, at: readonly string[]): ConfigRow[] {
  return Object.entries(parent.properties ?? {}).flatMap(([name, child]) => {
    const path = [...at, name]
    const row: ConfigRow = {
      path,
      section: child.type === 'object',
      type: typeOf(child),
      allowed: allowed(child),
      description: child.description ?? '',
      required: parent.required?.includes(name) ?? false,
      byDefault: child.type === 'object' ? undefined : child.default,
      example: child.example
    }
    return [row, ...walk(child, path)]
  })
}

function typeOf(schema: JsonSchema): ConfigRow['type'] {
  if (schema.type === 'integer' || schema.type === 'number') return 'number'
  if (schema.type === 'boolean') return 'boolean'
  return schema.type === 'array' ? 'list' : 'string'
}

function allowed(schema: JsonSchema): string {
  if (schema.enum) return schema.enum.join(', ')
  if (schema.type === 'integer') return `${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'boolean') return 'true, false'
  if (schema.format === 'uri') return 'URL'
  return schema.format ?? (schema.type === 'array' ? 'list' : 'text')
}
