import type { Agent, ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { reportOf, type AccessHook } from './access-log.ts'
import { errorMessage, nginxPage, type Answer } from './answer.ts'
import { requestHeaders, responseHeaders } from './headers.ts'
import type { Router, Timeouts } from './router.ts'
import { tryNode, type Failure } from './try-node.ts'
import type { LuaWorker } from './vm/gateway.ts'
import type { Worker } from './worker.ts'

/** A worker, and the parts that it proxies with. */
export interface ProxyWorker {
  readonly worker: Worker
  readonly router: Router
  readonly agent: Agent
  readonly gateway: string
  readonly lua: LuaWorker
  /** A number that no other request of the gateway has. */
  readonly nextId: () => number
  readonly onAccess: AccessHook
}

/** nginx does not retry these methods once the request has been sent (`proxy_next_upstream`). */
const NOT_IDEMPOTENT = new Set(['POST', 'PATCH', 'LOCK'])

/** These methods get a Content-Length even without a body. Otherwise Node's client would send an empty chunked body. */
const HAS_BODY = new Set(['POST', 'PUT', 'PATCH'])

/**
 * One request through the gateway, in nginx's phases. *access* finds the route and picks a node. Then the whole client
 * body is read. *balancer* connects, with retries. *log* releases everything. Any time can pass between access and
 * balancer. What happens in each phase is decided in Lua, by the plugin and the stand-ins for APISIX's modules.
 */
export function proxyRequest(on: ProxyWorker, request: IncomingMessage, response: ServerResponse): void {
  const report = reportOf(on, request)
  const method = request.method ?? 'GET'
  const path = request.url ?? '/'
  const id = on.nextId()
  const nodes: string[] = []
  let attempt: ClientRequest | undefined
  let left = 0
  let truncated = false
  let over = false

  const log = (): void => {
    if (over) return
    over = true
    on.worker.run(() => on.lua.log(id))
    const status = response.writableFinished || truncated ? response.statusCode : 499
    report({ status, nodes, truncated, upgraded: false })
  }
  // Every end of the connection comes through here, so that the count does not leak.
  response.once('close', () => {
    if (!response.writableFinished) attempt?.destroy()
    log()
  })

  const refuse = (answer: Answer): void => {
    response.writeHead(answer.status, { ...answer.headers, 'content-length': Buffer.byteLength(answer.body) })
    response.end(answer.body)
  }

  const access = (): void => {
    const found = on.router.find(request)
    if (found.kind === 'no-route') return refuse(errorMessage(404, '404 Route Not Found'))
    if (found.kind === 'upstream-gone') return refuse(nginxPage(502))
    if (found.kind === 'no-upstream') return refuse(nginxPage(503))
    const { timeouts } = found
    const status = on.lua.access(id, found.place, askedOf(request))
    if (status !== 0) return refuse(nginxPage(status))
    const hasBody =
      request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
    if (!hasBody) return connect(timeouts, [])
    const body: Buffer[] = []
    request.on('data', (chunk: Buffer) => body.push(chunk))
    request.once('end', () => on.worker.run(() => connect(timeouts, body)))
  }

  const connect = (timeouts: Timeouts, body: readonly Buffer[], failure?: Failure): void => {
    if (over) return
    const balanced = on.lua.balance(id)
    if (balanced.kind === 'refused') {
      return refuse(nginxPage(failure?.kind === 'timeout' ? 504 : failure ? 502 : balanced.status))
    }
    const { target } = balanced
    if (!failure) left = balanced.more
    nodes.push(target.name)
    const hasBody = body.length > 0 || request.headers['content-length'] !== undefined || HAS_BODY.has(method)
    attempt = tryNode({
      agent: on.agent,
      timeouts,
      target,
      method,
      path,
      headers: requestHeaders(
        request.rawHeaders,
        request.socket.remoteAddress ?? '',
        hasBody ? body.reduce((sum, chunk) => sum + chunk.length, 0) : undefined
      ),
      body,
      onResponse: answer => on.worker.run(() => relay(answer)),
      onFailure: failed => on.worker.run(() => retry(failed, timeouts, body))
    })
  }

  const retry = (failure: Failure, timeouts: Timeouts, body: readonly Buffer[]): void => {
    if (over) return
    const mayRepeat = !failure.sent || !NOT_IDEMPOTENT.has(method)
    left -= 1
    if (left < 0 || !mayRepeat) return refuse(nginxPage(failure.kind === 'timeout' ? 504 : 502))
    connect(timeouts, body, failure)
  }

  const relay = (answer: IncomingMessage): void => {
    if (over) return void answer.destroy()
    on.lua.header(id, answer.statusCode ?? 502, answer.headers['content-type'] ?? '')
    response.writeHead(
      answer.statusCode ?? 502,
      answer.statusMessage ?? '',
      responseHeaders(answer.rawHeaders)
    )
    answer.once('close', () => {
      if (answer.complete) return
      truncated = true
      // Sends the part that has arrived, then ends the connection: the body is shorter than announced.
      response.socket?.destroySoon()
    })
    answer.on('error', () => {})
    answer.pipe(response)
  }

  request.on('error', () => {})
  access()
}

export const askedOf = (request: IncomingMessage) => ({
  uri: (request.url ?? '/').split('?', 1)[0] ?? '/',
  host: request.headers.host ?? '',
  client: request.socket.remoteAddress ?? ''
})
