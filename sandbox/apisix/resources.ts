/** The types of objects that APISIX keeps. */
export const RESOURCES = [
  'routes',
  'services',
  'upstreams',
  'consumers',
  'ssls',
  'stream_routes',
  'global_rules',
  'plugin_configs',
  'plugin_metadata',
  'protos',
  'consumer_groups',
  'secrets'
] as const

/** The types whose revisions a worker reports, and whose objects can hold a place. */
export const APPLIED = [
  'upstreams',
  'services',
  'routes',
  'plugin_configs',
  'global_rules',
  'consumers',
  'consumer_groups'
] as const
