import type { Agent, ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { AccessHook } from './access-log.ts'
import { errorMessage, nginxPage, type Answer } from './answer.ts'
import type { Barrier } from './barrier.ts'
import { requestHeaders, responseHeaders } from './headers.ts'
import { chooseNode, takeNode, type Held } from './pick.ts'
import { destinationOf } from './destination.ts'
import type { Router } from './router.ts'
import { tryNode, type Failure } from './try-node.ts'
import type { Target } from './balancer.ts'
import type { Upstream } from './upstream.ts'
import type { Worker } from './worker.ts'

/** A worker, and the parts that it proxies with. */
export interface ProxyWorker {
  readonly worker: Worker
  readonly router: Router
  readonly agent: Agent
  readonly gateway: string
  readonly barrier: Barrier | undefined
  readonly onAccess: AccessHook
}

/** nginx does not retry these methods once the request has been sent (`proxy_next_upstream`). */
const NOT_IDEMPOTENT = new Set(['POST', 'PATCH', 'LOCK'])

/** These methods get a Content-Length even without a body. Otherwise Node's client would send an empty chunked body. */
const HAS_BODY = new Set(['POST', 'PUT', 'PATCH'])

/**
 * One request through the gateway, in nginx's phases. *access* finds the route and picks a node. Then the whole client
 * body is read. *balancer* connects, with retries. *log* releases everything. Any time can pass between access and
 * balancer, so a slow upload can end at a node that was removed long before. So a node is counted, and its entry is
 * read, only right before the connect.
 */
export function proxyRequest(on: ProxyWorker, request: IncomingMessage, response: ServerResponse): void {
  const started = performance.now()
  const method = request.method ?? 'GET'
  const path = request.url ?? '/'
  const tried = new Set<Target>()
  const nodes: string[] = []
  let held: Held | undefined
  let attempt: ClientRequest | undefined
  let left = 0
  let moved = false
  let bypass = false
  let truncated = false
  let over = false

  const log = (): void => {
    if (over) return
    over = true
    held?.release()
    const status = response.writableFinished || truncated ? response.statusCode : 499
    on.onAccess({
      time: Date.now(),
      elapsedMs: performance.now() - started,
      gateway: on.gateway,
      worker: on.worker.id,
      method,
      path,
      status,
      nodes,
      truncated,
      bypass,
      moved,
      upgraded: false
    })
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
  const refuseFor = (why: 'none' | 'sealed' | 'tried'): void => {
    if (why === 'sealed' && on.barrier) on.barrier.counts.refused += 1
    refuse(nginxPage(503))
  }
  const optionsOf = (upstream: Upstream) => ({
    upstream,
    barrier: on.barrier,
    pid: on.worker.pid,
    tried,
    key: path
  })
  /** Takes the node to connect to now, and counts the request there. Returns false if no node is left. */
  const take = (upstream: Upstream, first?: Target): boolean => {
    const picked = takeNode(optionsOf(upstream), first)
    if (picked.kind !== 'held') return false
    held = picked.held
    bypass ||= held.bypass
    moved ||= first !== undefined && held.target !== first
    return true
  }

  const access = (): void => {
    const found = destinationOf(on.router, request)
    if (found.kind === 'no-route') return refuse(errorMessage(404, '404 Route Not Found'))
    if (found.kind === 'upstream-gone') return refuse(nginxPage(502))
    if (found.kind === 'no-upstream') return refuse(nginxPage(503))
    const { upstream } = found
    const choice = chooseNode(optionsOf(upstream))
    if (choice.kind !== 'choice') return refuseFor(choice.kind)
    const hasBody =
      request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
    if (!hasBody) return balance(upstream, choice.target, [])
    const body: Buffer[] = []
    request.on('data', (chunk: Buffer) => body.push(chunk))
    request.once('end', () => on.worker.run(() => balance(upstream, choice.target, body)))
  }

  const balance = (upstream: Upstream, first: Target, body: readonly Buffer[]): void => {
    if (over) return
    // This list of nodes is as old as the request. If only sealed nodes are left in it, the current list may have others.
    const goTo = take(upstream, first) ? upstream : takeOfToday(upstream)
    if (!goTo) return refuseFor('sealed')
    left = held?.isSuccessor && goTo.derivesRetries ? Math.max(goTo.retries, 1) : goTo.retries
    connect(goTo, body)
  }

  const takeOfToday = (old: Upstream): Upstream | undefined => {
    const found = destinationOf(on.router, request)
    if (found.kind !== 'upstream' || found.upstream === old || !take(found.upstream)) return undefined
    moved = true
    if (on.barrier) on.barrier.counts.moved += 1
    return found.upstream
  }

  const connect = (upstream: Upstream, body: readonly Buffer[]): void => {
    if (!held) return
    const { target } = held
    nodes.push(target.name)
    tried.add(target)
    const hasBody = body.length > 0 || request.headers['content-length'] !== undefined || HAS_BODY.has(method)
    attempt = tryNode({
      agent: on.agent,
      upstream,
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
      onFailure: failure => on.worker.run(() => retry(failure, upstream, body))
    })
  }

  const retry = (failure: Failure, upstream: Upstream, body: readonly Buffer[]): void => {
    if (over) return
    held?.release()
    const mayRepeat = !failure.sent || !NOT_IDEMPOTENT.has(method)
    left -= 1
    if (left < 0 || !mayRepeat || !take(upstream))
      return refuse(nginxPage(failure.kind === 'timeout' ? 504 : 502))
    connect(upstream, body)
  }

  const relay = (answer: IncomingMessage): void => {
    if (over) return void answer.destroy()
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
