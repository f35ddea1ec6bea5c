import type { Socket } from 'node:net'
import { errorMessage, json, nginxPage, type Answer } from './answer.ts'
import { byWorker, serveApi, type Api, type Ask } from './api-server.ts'
import { controlView, type ControlKind } from './control-view.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import { readNodes } from './nodes.ts'
import type { Item } from './store.ts'
import type { Worker } from './worker.ts'

interface ControlApiOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Picks the worker of a new connection. That worker then handles all its requests. */
  readonly accept: (socket: Socket) => ShownWorker
  /** Answers as in API-driven standalone mode (test/recordings/control-api-standalone.json). */
  readonly standalone?: boolean
}

/** The part of a worker that the Control API reads. */
type ShownWorker = Pick<Worker, 'config' | 'turn'>

/**
 * The Control API as recorded in test/recordings/control-api-etcd.json. Each answer shows the configuration that one worker
 * has applied: the worker that has the connection. The answer does not name that worker.
 */
export const serveControlApi = (options: ControlApiOptions): Promise<Api> =>
  serveApi({
    host: options.host,
    port: options.port,
    ...byWorker(options.accept, async (worker, ask) => answerControl(worker, ask, options))
  })

function answerControl(worker: ShownWorker, ask: Ask, options: ControlApiOptions): Answer {
  const { standalone = false } = options
  if (ask.method !== 'GET') return nginxPage(404)
  const [root, version, what = '', id, id2, ...more] = ask.path.split('/')
  if (root !== '' || version !== 'v1' || more.length > 0) return nginxPage(404)
  switch (what) {
    case 'upstreams':
    case 'services':
    case 'routes':
      return id === undefined ? json(200, luaList(everything(worker, what, standalone))) : nginxPage(404)
    case 'upstream':
    case 'service':
    case 'route':
      return id === undefined || id2 !== undefined ? nginxPage(404) : one(worker, what, id, standalone)
    case 'healthcheck':
      return id === undefined ? json(200, luaList(allChecks(worker))) : oneCheck(worker, id, id2)
    default:
      return nginxPage(404)
  }
}

const everything = (
  worker: ShownWorker,
  resource: 'upstreams' | 'services' | 'routes',
  standalone: boolean
): JsonObject[] => worker.config.list(resource).map(item => controlView(KINDS[resource], item, standalone))

const KINDS = { upstreams: 'upstream', services: 'service', routes: 'route' } as const satisfies Record<
  string,
  ControlKind
>

const one = (worker: ShownWorker, kind: ControlKind, id: string, standalone: boolean): Answer => {
  const item = worker.config.get(`${kind}s`, id)
  return item ? json(200, controlView(kind, item, standalone)) : errorMessage(404, `${kind}[${id}] not found`)
}

const CHECKED = ['routes', 'services', 'upstreams']

const allChecks = (worker: ShownWorker): JsonObject[] =>
  CHECKED.flatMap(resource => worker.config.list(resource).map(checkView)).filter(view => view !== undefined)

const oneCheck = (worker: ShownWorker, resource: string, id: string | undefined): Answer => {
  if (id === undefined) return errorMessage(404, `missing src id for src type ${resource}`)
  if (!CHECKED.includes(resource)) return errorMessage(400, `invalid src type ${resource}`)
  const item = worker.config.get(resource, id)
  if (!item) return errorMessage(404, `${resource}[${id}] not found`)
  const view = checkView(item)
  return view ? json(200, view) : errorMessage(404, `no checker for ${resource}[${id}]`)
}

/** The stand-in does no health checks: if they are configured, every node is reported healthy. */
const checkView = (item: Item): JsonObject | undefined => {
  const upstream = isObject(item.value['upstream']) ? item.value['upstream'] : item.value
  const { checks } = upstream
  if (!isObject(checks)) return undefined
  const { active } = checks
  const nodes = readNodes(upstream['nodes']).map(({ host, port }) => ({
    ip: host,
    hostname: host,
    port: port ?? 80,
    status: 'healthy',
    counter: { success: 0, http_failure: 0, tcp_failure: 0, timeout_failure: 0 }
  }))
  return { name: item.key, type: isObject(active) ? (active['type'] ?? 'http') : 'http', nodes }
}

/** Lua cannot tell an empty list from an empty map, and writes `{}`. */
const luaList = (list: readonly JsonObject[]): Json | readonly JsonObject[] => (list.length === 0 ? {} : list)
