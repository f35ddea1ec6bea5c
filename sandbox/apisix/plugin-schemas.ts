import { errorMessage, json, type Answer } from './answer.ts'

/** The plugins that the stand-in knows, by name: a controller asks for them and their schemas when it starts. */
const PLUGINS: Readonly<Record<string, object>> = {
  'traffic-split': {
    version: 0.1,
    priority: 966,
    schema: { type: 'object', properties: { rules: { type: 'array' } } }
  }
}

/** `GET /plugins?all=true`, `/plugins/list`, `/plugins/<name>` and `/schema/plugins/<name>`; nothing for any other path. */
export function pluginAnswer(
  method: string,
  [resource = '', ...rest]: readonly string[],
  query: URLSearchParams
): Answer | undefined {
  const named = resource === 'schema' && rest[0] === 'plugins' ? rest.slice(1) : rest
  if (method !== 'GET' || (resource !== 'plugins' && named === rest)) return undefined
  if (query.get('all') === 'true') return json(200, PLUGINS)
  const [name = ''] = named
  if (name === 'list') return json(200, Object.keys(PLUGINS))
  const plugin = PLUGINS[name]
  return plugin && 'schema' in plugin
    ? json(200, plugin.schema as Record<string, unknown>)
    : errorMessage(404, 'plugin not found in subsystem http')
}
