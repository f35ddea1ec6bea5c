import { discover } from './discovery.ts'
import { ApiError, forbidden, notFound } from './errors.ts'
import type { Asked, FaultState } from './faults.ts'
import { answerList } from './list.ts'
import type { Handler, Request, Response } from './listener.ts'
import { mustAcceptJson } from './media.ts'
import { respond, respondError } from './respond.ts'
import { review } from './reviews.ts'
import type { Store } from './store.ts'
import { parseTarget, verbOf, type Target } from './target.ts'
import { openWatchStream, type WatchStream } from './watch-stream.ts'
import { parseWatch, runWatch } from './watch.ts'
import { write } from './write.ts'
import { qualified } from './resources.ts'

/** The state that all answers use. */
interface Api {
  readonly store: Store
  /** The administrator's bearer token. */
  readonly token: () => string
  readonly faults: FaultState
  readonly watches: Set<WatchStream>
  /** Such as "1.36". */
  readonly version: string
  /** Answers 422 to a WatchList, which this version does not have. */
  readonly old: boolean
  readonly bookmarkEveryMs: number
  /** How long a read waits for a resourceVersion from the future, ms. */
  readonly waitMs: number
  /** Resets the connection of a response. */
  reset(response: Response): void
}

const watches = (query: URLSearchParams) => query.get('watch') === 'true' || query.get('watch') === '1'

async function startWatch(
  api: Api,
  target: Target,
  query: URLSearchParams,
  request: Request,
  response: Response
) {
  mustAcceptJson(request.headers.accept)
  const wanted = await parseWatch(api.store, target, query, api)
  let running: { stop(): void } | undefined
  const stream = openWatchStream(response, api.faults, () => {
    running?.stop()
    api.watches.delete(stream)
  })
  api.watches.add(stream)
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' }
  if ('stream' in response) response.writeHead(200, headers)
  else {
    response.writeHead(200, headers)
    response.flushHeaders()
  }
  running = runWatch(api.store, wanted, stream, api.bookmarkEveryMs)
  // The stream may have ended while the first events were sent.
  if (!api.watches.has(stream)) running.stop()
}

async function read(api: Api, target: Target, query: URLSearchParams, request: Request, response: Response) {
  mustAcceptJson(request.headers.accept)
  if (target.name === undefined) {
    const { waitMs } = api
    const list = await answerList(api.store, target, query, { waitMs, staleAt: api.faults.staleAt() })
    return respond(response, 200, list)
  }
  const object = api.store.get(target.resource, target.namespace, target.name)
  if (!object) throw notFound(target.resource, target.name)
  return respond(response, 200, object)
}

async function stored(
  api: Api,
  target: Target,
  url: URL,
  request: Request,
  response: Response
): Promise<void> {
  const method = request.method ?? 'GET'
  const watching = method === 'GET' && watches(url.searchParams)
  const verb = verbOf(method, target, watching)
  if (!verb)
    throw new ApiError(
      405,
      'MethodNotAllowed',
      'the server does not allow this method on the requested resource'
    )
  if (api.faults.denies(verb, target.resource))
    throw forbidden(
      `${qualified(target.resource)} is forbidden: User "sandbox" cannot ${verb} resource "${target.resource}"`
    )
  if (watching) return startWatch(api, target, url.searchParams, request, response)
  if (
    (verb === 'get' || verb === 'list') &&
    (target.subresource === undefined || target.subresource === 'status')
  )
    return read(api, target, url.searchParams, request, response)
  return write(api, verb, target, url.searchParams, request, response)
}

async function answer(api: Api, url: URL, request: Request, response: Response): Promise<void> {
  const open = discover(url.pathname, api.version)
  if (open?.public) return respond(response, 200, open.body)
  if (request.headers.authorization !== `Bearer ${api.token()}`)
    throw new ApiError(401, 'Unauthorized', 'Unauthorized')
  if (open) return respond(response, 200, open.body)
  if (request.method === 'POST' && (await review(api.faults, url.pathname, request, response))) return
  const target = parseTarget(url.pathname)
  if (!target) throw new ApiError(404, 'NotFound', 'the server could not find the requested resource')
  return stored(api, target, url, request, response)
}

/** Applies the matching faults. Returns false if a fault has handled the request. */
async function survives(api: Api, asked: Asked, response: Response): Promise<boolean> {
  for (const effect of api.faults.effects(asked))
    switch (effect.kind) {
      case 'delay':
        await new Promise(resolve => setTimeout(resolve, effect.ms()))
        break
      case 'answer':
        respondError(response, effect.error)
        return false
      case 'reset':
        api.reset(response)
        return false
      case 'hang':
        return false
    }
  return true
}

export function createHandler(api: Api): Handler {
  const handle = async (request: Request, response: Response) => {
    // A client that disconnects mid-answer needs no handling.
    request.on('error', () => {})
    response.on('error', () => {})
    try {
      const url = new URL(request.url ?? '/', 'http://localhost')
      const method = request.method ?? 'GET'
      const asked = { method, path: url.pathname, watch: method === 'GET' && watches(url.searchParams) }
      if (await survives(api, asked, response)) await answer(api, url, request, response)
    } catch (err) {
      if (response.headersSent || response.destroyed) response.destroy()
      else respondError(response, err)
    }
  }
  return (request, response) => void handle(request, response)
}
