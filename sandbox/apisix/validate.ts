import { isObject, type Json, type JsonObject } from './json.ts'

/** The part of JSON Schema that APISIX's descriptions of its objects use. */
export interface Schema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  /** False: only the named properties may be there. */
  readonly additionalProperties?: false
  /** The schema for the value of every property. APISIX writes it as the pattern `.*`, and uses no other pattern. */
  readonly every?: Schema
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: true
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly enum?: readonly (string | number)[]
  readonly dependencies?: Readonly<Record<string, Schema>>
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly not?: Schema
}

type Problem = string | undefined

/**
 * The first problem that a schema finds, in the words of APISIX's validator (the Lua library jsonschema); `undefined` if it finds
 * none. No library for JavaScript has these words, or takes an empty array for a map as Lua does. Of several problems, APISIX may
 * report another one.
 */
export function problemOf(schema: Schema, value: Json): Problem {
  return (
    typeProblem(schema, value) ??
    (isTable(value) && !isFilledArray(value) ? objectProblem(schema, asObject(value)) : undefined) ??
    (isTable(value) && !isFilledMap(value) ? arrayProblem(schema, asArray(value)) : undefined) ??
    (typeof value === 'string' ? stringProblem(schema, value) : undefined) ??
    (typeof value === 'number' ? numberProblem(schema, value) : undefined) ??
    (schema.enum && !schema.enum.some(one => one === value)
      ? 'matches none of the enum values'
      : undefined) ??
    compoundProblem(schema, value)
  )
}

const isTable = (value: Json): value is JsonObject | Json[] => typeof value === 'object' && value !== null
const isFilledArray = (value: Json): boolean => Array.isArray(value) && value.length > 0
const isFilledMap = (value: Json): boolean => isObject(value) && Object.keys(value).length > 0
const asObject = (value: JsonObject | Json[]): JsonObject => (Array.isArray(value) ? {} : value)
const asArray = (value: JsonObject | Json[]): Json[] => (Array.isArray(value) ? value : [])

const luaType = (value: Json): string => {
  if (value === null) return 'userdata'
  return typeof value === 'object' ? 'table' : typeof value
}

function typeProblem({ type }: Schema, value: Json): Problem {
  if (type === undefined) return undefined
  const fits = {
    object: () => isTable(value) && !isFilledArray(value),
    array: () => isTable(value) && !isFilledMap(value),
    integer: () => Number.isInteger(value),
    string: () => typeof value === 'string',
    number: () => typeof value === 'number',
    boolean: () => typeof value === 'boolean'
  }
  return fits[type]() ? undefined : `wrong type: expected ${type}, got ${luaType(value)}`
}

function objectProblem(schema: Schema, value: JsonObject): Problem {
  const { properties = {}, required = [], dependencies = {}, every } = schema
  for (const [name, inner] of Object.entries(properties)) {
    const at = value[name]
    if (at === undefined) continue
    const problem = problemOf(inner, at)
    if (problem !== undefined) return `property "${name}" validation failed: ${problem}`
    const depends = dependencies[name]
    const needs = depends ? problemOf(depends, value) : undefined
    if (needs !== undefined) return `failed to validate dependent schema for "${name}": ${needs}`
  }
  const missing = required.find(name => value[name] === undefined)
  if (missing !== undefined) return `property "${missing}" is required`
  for (const [name, at] of Object.entries(value)) {
    const problem = every ? problemOf(every, at) : undefined
    if (problem !== undefined) return `failed to validate ${name} (matching ".*"): ${problem}`
    if (schema.additionalProperties === false && !Object.hasOwn(properties, name))
      return `additional properties forbidden, found ${name}`
  }
  return undefined
}

function arrayProblem(schema: Schema, value: readonly Json[]): Problem {
  const { items, minItems = 0, maxItems = Infinity } = schema
  if (value.length < minItems) return `expect array to have at least ${minItems} items`
  if (value.length > maxItems) return `expect array to have at most ${maxItems} items`
  for (const [index, item] of value.entries()) {
    const problem = items ? problemOf(items, item) : undefined
    if (problem !== undefined) return `failed to validate item ${index + 1}: ${problem}`
  }
  if (!schema.uniqueItems) return undefined
  const seen = value.map(item => JSON.stringify(item))
  const again = seen.findIndex((item, index) => seen.indexOf(item) < index)
  if (again === -1) return undefined
  const first = seen.indexOf(seen[again] ?? '')
  return `expected unique items but items ${first + 1} and ${again + 1} are equal`
}

function stringProblem({ minLength = 0, maxLength = Infinity, pattern }: Schema, value: string): Problem {
  const { length } = Array.from(value)
  if (length < minLength) return `string too short, expected at least ${minLength}, got ${length}`
  if (length > maxLength) return `string too long, expected at most ${maxLength}, got ${length}`
  if (pattern === undefined || new RegExp(pattern).test(value)) return undefined
  return `failed to match pattern ${quoted(pattern)} with ${quoted(value)}`
}

/** Lua's `%q`. */
const quoted = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\\n')}"`

function numberProblem({ minimum, maximum, exclusiveMinimum }: Schema, value: number): Problem {
  if (minimum !== undefined && value < minimum) return `expected ${value} to be at least ${minimum}`
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    return `expected ${value} to be greater than ${exclusiveMinimum}`
  if (maximum !== undefined && value > maximum) return `expected ${value} to be at most ${maximum}`
  return undefined
}

function compoundProblem({ allOf = [], anyOf, oneOf, not }: Schema, value: Json): Problem {
  const fits = (schema: Schema) => problemOf(schema, value) === undefined
  for (const [index, schema] of allOf.entries()) {
    const problem = problemOf(schema, value)
    if (problem !== undefined) return `allOf ${index + 1} failed: ${problem}`
  }
  if (anyOf && !anyOf.some(fits)) {
    const asked = anyOf.flatMap(({ required }) => (required ? [JSON.stringify(required)] : []))
    return `object matches none of the required${asked.length > 0 ? `: ${asked.join(' or ')}` : ''}`
  }
  const matching = oneOf ? oneOf.filter(fits).length : 1
  if (matching === 0) return 'value should match only one schema, but matches none'
  if (matching > 1) {
    const [first = 0, second = 0] = oneOf?.flatMap((schema, index) => (fits(schema) ? [index + 1] : [])) ?? []
    return `value should match only one schema, but matches both schemas ${first} and ${second}`
  }
  return not && fits(not) ? "value wasn't supposed to match schema" : undefined
}
