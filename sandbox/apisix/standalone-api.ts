import { errorMessage, json, nginxPage, text, withHeaders, type Answer } from './answer.ts'
import { serveApi, type Api, type Ask } from './api-server.ts'
import { createDocument, type Document } from './document.ts'
import { isObject, parseJson } from './json.ts'
import type { Store } from './store.ts'

interface StandaloneApiOptions {
  /** This gateway's own store: in this mode gateways share nothing. */
  readonly store: Store
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly adminKey: string
}

const PATH = '/apisix/admin/configs'

/** The Admin API in API-driven standalone mode, with the answers recorded in test/recordings/admin-api-standalone.json. */
export function serveStandaloneApi(options: StandaloneApiOptions): Promise<Api> {
  const document = createDocument(options.store)
  return serveApi({
    host: options.host,
    port: options.port,
    handle: ask => Promise.resolve(answer(options, document, ask))
  })
}

function answer({ adminKey }: StandaloneApiOptions, document: Document, ask: Ask): Answer {
  if (ask.path !== PATH) return nginxPage(404)
  const token = ask.headers['x-api-key']
  if (token !== adminKey)
    return json(401, {
      error_msg: 'failed to check token',
      description: token === undefined ? 'missing apikey' : 'wrong apikey'
    })
  switch (ask.method) {
    case 'GET':
      return stamped(json(200, document.shown()), document)
    case 'HEAD':
      return stamped(text(200, ''), document)
    case 'PUT':
      return put(document, ask)
    default:
      return nginxPage(405)
  }
}

function put(document: Document, { headers, body }: Ask): Answer {
  const digest = headers['x-digest']
  if (typeof digest !== 'string') return errorMessage(400, 'missing digest header')
  const parsed = parseJson(body)
  // An equal digest is answered before the body is read, so even a body that is not JSON passes.
  const taken = document.put(digest, parsed.ok && isObject(parsed.value) ? parsed.value : {})
  if (taken.kind === 'same') return { status: 204, headers: {}, body: '' }
  return taken.kind === 'refused' ? errorMessage(400, taken.problem) : stamped(text(202, ''), document)
}

const stamped = (answer: Answer, { digest, lastModified }: Document): Answer =>
  digest === undefined
    ? answer
    : withHeaders(answer, { 'x-digest': digest, 'x-last-modified': String(lastModified) })
