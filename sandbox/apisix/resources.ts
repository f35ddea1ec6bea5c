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
