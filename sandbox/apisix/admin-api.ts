import { listAnswer, shown } from './admin-list.ts'
import { patch, post, put, remove, type AdminWrite } from './admin-write.ts'
import { errorMessage, json, nginxPage, withHeaders, type Answer } from './answer.ts'
import { serveApi, type Api, type Ask } from './api-server.ts'
import { parseJson } from './json.ts'
import { RESOURCES } from './resources.ts'
import { keyOf, type Store } from './store.ts'

interface AdminApiOptions {
  readonly store: Store
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly adminKey: string
  /** L4 proxying: without it `stream_routes` is refused, as in a default installation. */
  readonly stream?: boolean
}

const KNOWN: ReadonlySet<string> = new Set(RESOURCES)
const ROOT = '/apisix/admin/'
/** Bytes of a request's body. */
const MAX_BODY = 1.5 * 1024 * 1024

/** The Admin API in etcd mode, with the answers recorded in test/recordings/admin-api-etcd.json. */
export const serveAdminApi = (options: AdminApiOptions): Promise<Api> =>
  serveApi({
    host: options.host,
    port: options.port,
    handle: async ask => {
      const answer = await answerAdmin(options, ask)
      // nginx, not APISIX, checks If-Match: on the response, after the write. APISIX sends no ETag that could match.
      const condition = ask.headers['if-match']
      return answer && condition !== undefined && condition !== '*' && answer.status < 300
        ? nginxPage(412)
        : answer
    }
  })

async function answerAdmin(options: AdminApiOptions, ask: Ask): Promise<Answer | undefined> {
  if (!ask.path.startsWith(ROOT)) return errorMessage(404, '404 Route Not Found')
  const token = ask.headers['x-api-key'] ?? ask.query.get('api_key') ?? undefined
  if (token !== options.adminKey)
    return json(401, {
      error_msg: 'failed to check token',
      description: token === undefined ? 'missing apikey' : 'wrong apikey'
    })
  const segments = ask.path.slice(ROOT.length).split('/')
  const [resource = '', id = '', ...subPath] = segments
  if (resource === 'stream_routes' && !options.stream)
    return errorMessage(400, 'stream mode is disabled, can not add stream routes')
  const plugins = pluginAnswer(ask.method, segments, ask.query)
  if (plugins) return versioned(plugins)
  if (!KNOWN.has(resource)) return errorMessage(404, `Unsupported resource type: ${resource}`)
  const size = Buffer.byteLength(ask.body)
  if (size > MAX_BODY)
    return errorMessage(
      400,
      `invalid request body: request size ${size} is greater than the maximum size ${MAX_BODY} allowed`
    )
  const body = ask.body === '' ? undefined : parseJson(ask.body)
  if (body && !body.ok)
    return json(400, { req_body: ask.body, error_msg: `invalid request body: ${body.problem}` })
  const ttl = ask.query.get('ttl')
  if (ttl !== null && Number.isNaN(Number(ttl)))
    return errorMessage(400, 'invalid argument ttl: should be a number')

  if (options.store.health === 'black-holed') return undefined
  if (options.store.health === 'down')
    return versioned(errorMessage(503, 'has no healthy etcd endpoint available'))
  const write = {
    resource,
    id,
    // A trailing slash is not a sub-path.
    subPath: subPath.at(-1) === '' ? subPath.slice(0, -1) : subPath,
    body: body?.value,
    ttlSeconds: ttl === null ? undefined : Number(ttl),
    force: ask.query.get('force') === 'true'
  }
  return versioned(await answerResource(options, ask, write))
}

const answerResource = async (options: AdminApiOptions, ask: Ask, write: AdminWrite): Promise<Answer> => {
  const { store } = options
  switch (ask.method) {
    case 'GET': {
      if (write.id === '') return listAnswer(store.list(write.resource), ask.query)
      const item = store.get(keyOf(write.resource, write.id))
      return item ? json(200, shown(item)) : json(404, { message: 'Key not found' })
    }
    case 'PUT':
      return put(store, write)
    case 'POST':
      return post(store, write)
    case 'PATCH':
      return patch(store, write)
    case 'DELETE':
      return remove(store, write)
    default:
      return errorMessage(404, 'not found')
  }
}

/** Pages that nginx generates carry none of APISIX's headers. */
const versioned = (answer: Answer): Answer =>
  answer.headers['content-type'] === 'application/json'
    ? withHeaders(answer, { 'x-api-version': 'v3' })
    : answer

/** The plugins that the stand-in knows, by name: a controller asks for them and their schemas when it starts. */
const PLUGINS: Readonly<Record<string, object>> = {
  'traffic-split': {
    version: 0.1,
    priority: 966,
    schema: { type: 'object', properties: { rules: { type: 'array' } } }
  }
}

/** `GET /plugins?all=true`, `/plugins/list`, `/plugins/<name>` and `/schema/plugins/<name>`; nothing for any other path. */
function pluginAnswer(
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
