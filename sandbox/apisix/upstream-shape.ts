import type { Schema } from './validate.ts'

/** The fields of an upstream in APISIX 3.18, and the values that they take (apisix/schema_def.lua). */

export const text = (minLength: number, maxLength: number): Schema => ({
  type: 'string',
  minLength,
  maxLength
})
export const integer = (minimum: number, maximum?: number): Schema => ({
  type: 'integer',
  minimum,
  ...(maximum !== undefined && { maximum })
})
const positive: Schema = { type: 'number', exclusiveMinimum: 0 }
const notNegative: Schema = { type: 'number', minimum: 0 }
const oneOf = (...values: readonly string[]): Schema => ({ type: 'string', enum: values })
export const boolean: Schema = { type: 'boolean' }
export const string: Schema = { type: 'string' }
export const has = (...required: readonly string[]): Schema => ({ required })

export const ID: Schema = {
  anyOf: [{ ...text(1, 64), pattern: '^[a-zA-Z0-9-_.]+$' }, integer(1)]
}
export const HOST: Schema = { type: 'string', pattern: '^\\*$|^\\*?[0-9a-zA-Z-._\\[\\]:]+$' }
export const LABELS: Schema = { type: 'object', every: { ...text(1, 256), pattern: '^\\S+$' } }
export const TIMES = { create_time: { type: 'integer' }, update_time: { type: 'integer' } } as const
export const COMMON = { id: ID, name: text(1, 256), desc: text(0, 256), labels: LABELS, ...TIMES } as const
export const TIMEOUT: Schema = {
  type: 'object',
  properties: { connect: positive, send: positive, read: positive },
  required: ['connect', 'send', 'read']
}

const STATUSES: Schema = { type: 'array', minItems: 1, items: integer(200, 599), uniqueItems: true }
export const METHOD = oneOf(
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'HEAD',
  'OPTIONS',
  'CONNECT',
  'TRACE',
  'PURGE'
)
const CHECK_TYPE = oneOf('http', 'https', 'tcp')
const unhealthy = (least: number) => {
  const tries = integer(least, 254)
  return { http_statuses: STATUSES, http_failures: tries, tcp_failures: tries, timeouts: tries }
}
const healthy = (least: number) => ({ http_statuses: STATUSES, successes: integer(least, 254) })
const CHECKS: Schema = {
  type: 'object',
  properties: {
    active: {
      type: 'object',
      properties: {
        type: CHECK_TYPE,
        timeout: { type: 'number' },
        concurrency: { type: 'integer' },
        host: HOST,
        port: integer(1, 65535),
        http_path: string,
        http_method: METHOD,
        https_verify_certificate: boolean,
        healthy: { type: 'object', properties: { interval: integer(1), ...healthy(1) } },
        unhealthy: { type: 'object', properties: { interval: integer(1), ...unhealthy(1) } },
        req_headers: { type: 'array', minItems: 1, items: string }
      }
    },
    passive: {
      type: 'object',
      properties: {
        type: CHECK_TYPE,
        healthy: { type: 'object', properties: healthy(0) },
        unhealthy: { type: 'object', properties: unhealthy(0) }
      }
    }
  },
  anyOf: [has('active'), has('active', 'passive')],
  additionalProperties: false
}

const NODES: Schema = {
  anyOf: [
    { type: 'object', every: integer(0) },
    {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          host: HOST,
          port: integer(1, 65535),
          weight: integer(0),
          priority: { type: 'integer' },
          metadata: { type: 'object' }
        },
        required: ['host', 'weight']
      }
    }
  ]
}

export const UPSTREAM: Schema = {
  type: 'object',
  properties: {
    ...COMMON,
    nodes: NODES,
    retries: integer(0),
    retry_timeout: notNegative,
    timeout: TIMEOUT,
    tls: {
      type: 'object',
      properties: {
        client_cert_id: ID,
        client_cert: text(128, 64 * 1024),
        client_key: text(64, 64 * 1024),
        verify: boolean
      },
      dependencies: {
        client_cert: has('client_key'),
        client_key: has('client_cert'),
        client_cert_id: { not: has('client_cert', 'client_key') }
      }
    },
    keepalive_pool: {
      type: 'object',
      properties: { size: integer(1), idle_timeout: notNegative, requests: integer(1) }
    },
    type: string,
    checks: CHECKS,
    hash_on: oneOf('vars', 'header', 'cookie', 'consumer', 'vars_combinations'),
    key: string,
    scheme: { enum: ['grpc', 'grpcs', 'http', 'https', 'tcp', 'tls', 'udp', 'kafka'] },
    discovery_type: string,
    discovery_args: { type: 'object', properties: { namespace_id: string, group_name: string } },
    pass_host: oneOf('pass', 'node', 'rewrite'),
    upstream_host: HOST,
    service_name: text(1, 256)
  },
  oneOf: [has('nodes'), has('service_name', 'discovery_type')],
  additionalProperties: false
}

/** The one key of a `chash` upstream, by its `hash_on`. */
export const HASH_KEYS: Readonly<Record<string, Schema>> = {
  vars: {
    type: 'string',
    pattern:
      '^((uri|server_name|server_addr|request_uri|remote_port|remote_addr|query_string|host|hostname|mqtt_client_id)' +
      '|arg_[0-9a-zA-z_-]+)$'
  },
  header: { type: 'string', pattern: '^[a-zA-Z0-9-_]+$' },
  cookie: { type: 'string', pattern: '^[a-zA-Z0-9-_]+$' },
  vars_combinations: string
}
