import {
  boolean,
  COMMON,
  has,
  HOST,
  ID,
  integer,
  LABELS,
  METHOD,
  string,
  text,
  TIMEOUT,
  TIMES,
  UPSTREAM
} from './upstream-shape.ts'
import type { Schema } from './validate.ts'

/** The fields of the objects of APISIX 3.18 other than upstreams, and their allowed values (apisix/schema_def.lua). */

const BYTE = '([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])'
const IPV4 = Array.from({ length: 4 }, () => BYTE).join('\\.')
const IPV6 = '([a-fA-F0-9]{0,4}:){1,8}(:[a-fA-F0-9]{0,4}){0,8}([a-fA-F0-9]{0,4})?'
/** An address or a network. */
const ADDRESS: Schema = {
  type: 'string',
  anyOf: [
    { pattern: `^${IPV4}(/([12]?[0-9]|3[0-2]))?$` },
    { pattern: `^${IPV6}(/[0-9]{1,3})?$` },
    { pattern: `^${IPV6}${IPV4}$` }
  ]
}
const PLUGINS: Schema = { type: 'object' }
const some = (items: Schema): Schema => ({ type: 'array', items, minItems: 1, uniqueItems: true })
const eitherOf = (one: string, several: string): Schema => ({
  oneOf: [{ not: { anyOf: [has(one), has(several)] } }, has(one), has(several)]
})
const SCRIPT = text(10, 102_400)
const TARGETS = ['plugins', 'upstream', 'upstream_id', 'service_id'] as const

const ROUTE: Schema = {
  type: 'object',
  properties: {
    ...COMMON,
    uri: text(1, 4096),
    uris: some(string),
    priority: { type: 'integer' },
    methods: {
      type: 'array',
      items: METHOD,
      uniqueItems: true
    },
    host: HOST,
    hosts: some(HOST),
    remote_addr: ADDRESS,
    remote_addrs: some(ADDRESS),
    timeout: TIMEOUT,
    vars: { type: 'array' },
    filter_func: { type: 'string', minLength: 10, pattern: '^function' },
    script: SCRIPT,
    script_id: ID,
    plugins: PLUGINS,
    plugin_config_id: ID,
    upstream: UPSTREAM,
    service_id: ID,
    upstream_id: ID,
    enable_websocket: boolean,
    status: { type: 'integer', enum: [1, 0] }
  },
  allOf: [
    { oneOf: [has('uri'), has('uris')] },
    eitherOf('host', 'hosts'),
    eitherOf('remote_addr', 'remote_addrs')
  ],
  anyOf: [
    ...TARGETS.map(target => has(target, 'uri')),
    ...TARGETS.map(target => has(target, 'uris')),
    has('script', 'uri'),
    has('script', 'uris')
  ],
  not: { anyOf: [has('script', 'plugins'), has('script', 'plugin_config_id')] },
  additionalProperties: false
}

const SERVICE: Schema = {
  type: 'object',
  properties: {
    ...COMMON,
    plugins: PLUGINS,
    upstream: UPSTREAM,
    upstream_id: ID,
    script: SCRIPT,
    enable_websocket: boolean,
    hosts: some(HOST)
  },
  additionalProperties: false
}

const STREAM_ROUTE: Schema = {
  type: 'object',
  properties: {
    ...COMMON,
    remote_addr: ADDRESS,
    server_addr: ADDRESS,
    server_port: integer(1, 65535),
    sni: HOST,
    upstream: UPSTREAM,
    upstream_id: ID,
    service_id: ID,
    plugins: PLUGINS,
    protocol: { type: 'object', required: ['name'] }
  },
  additionalProperties: false
}

const CONSUMER: Schema = {
  type: 'object',
  properties: {
    id: ID,
    username: { ...text(1, 256), pattern: '^[a-zA-Z0-9_\\-]+$' },
    desc: COMMON.desc,
    labels: LABELS,
    ...TIMES,
    group_id: ID,
    plugins: PLUGINS
  },
  required: ['username'],
  additionalProperties: false
}

const PLUGIN_CONFIG: Schema = {
  type: 'object',
  properties: { ...COMMON, name: string, plugins: PLUGINS },
  required: ['id', 'plugins'],
  additionalProperties: false
}

/** Schemas by the resource's name in the path. Other resources are stored unchecked: the agent and the controllers do not write them. */
export const SHAPES: Readonly<Record<string, Schema>> = {
  upstreams: UPSTREAM,
  routes: ROUTE,
  services: SERVICE,
  stream_routes: STREAM_ROUTE,
  consumers: CONSUMER,
  plugin_configs: PLUGIN_CONFIG,
  consumer_groups: PLUGIN_CONFIG,
  global_rules: {
    type: 'object',
    properties: { id: ID, ...TIMES, plugins: PLUGINS },
    required: ['id', 'plugins'],
    additionalProperties: false
  }
}

/** The configuration of the plugin traffic-split (apisix/plugins/traffic-split.lua). */
export const TRAFFIC_SPLIT: Schema = {
  type: 'object',
  properties: {
    rules: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          match: {
            type: 'array',
            items: { type: 'object', properties: { vars: { type: 'array' } } }
          },
          weighted_upstreams: {
            type: 'array',
            items: {
              type: 'object',
              properties: { upstream_id: ID, upstream: UPSTREAM, weight: integer(0) }
            },
            minItems: 1,
            maxItems: 20
          }
        }
      }
    }
  }
}
