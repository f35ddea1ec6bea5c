import { z } from 'zod'
import { schema } from './schema.ts'

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

/** One setting or section, with everything that docs, environment variables and messages need. */
export interface ConfigRow {
  readonly path: readonly string[]
  readonly section: boolean
  readonly type: 'string' | 'number' | 'boolean' | 'list'
  /** The allowed values, in words: `duration, 100ms to 1m`, `10 to 500`, `http, https`. */
  readonly allowed: string
  readonly description: string
  readonly required: boolean
  readonly byDefault: unknown
  readonly example: unknown
  /** The environment variable, such as `APISIX_DRAIN_APISIX_ADMIN_URL`. */
  readonly env: string
}

export const ENV_PREFIX = 'APISIX_DRAIN_'

/** Turns `['apisix', 'admin', 'keyFile']` into `APISIX_DRAIN_APISIX_ADMIN_KEY_FILE`. */
const envName = (path: readonly string[]) =>
  ENV_PREFIX + path.map(name => name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()).join('_')

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
      example: child.example,
      env: envName(path)
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
