import { request as send, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { nginxPage, type Answer } from './answer.ts'
import type { Target } from './balancer.ts'
import { destinationOf } from './destination.ts'
import type { ProxyWorker } from './exchange.ts'
import { upgradeHeaders } from './headers.ts'
import { takeNode, type Held } from './pick.ts'

/**
 * A protocol upgrade (websocket), with nginx's retries: another node is tried if one fails before its answer. After the
 * node's 101 the connection counts as `long`.
 */
export function proxyUpgrade(on: ProxyWorker, request: IncomingMessage, client: Duplex, head: Buffer): void {
  const started = performance.now()
  const path = request.url ?? '/'
  client.on('error', () => client.destroy())
  const found = destinationOf(on.router, request)
  const tried = new Set<Target>()
  const nodes: string[] = []
  let held: Held | undefined
  let bypass = false
  let status = 499
  let upgraded = false

  client.once('close', () => {
    held?.release()
    held = undefined
    on.onAccess({
      time: Date.now(),
      elapsedMs: performance.now() - started,
      gateway: on.gateway,
      worker: on.worker.id,
      method: request.method ?? 'GET',
      path,
      status,
      nodes,
      truncated: false,
      bypass,
      moved: false,
      upgraded
    })
  })
  const refuse = (answer: Answer): void => {
    status = answer.status
    client.end(rawAnswer(answer))
  }
  if (found.kind !== 'upstream')
    return refuse(nginxPage(found.kind === 'no-route' ? 404 : found.kind === 'upstream-gone' ? 502 : 503))
  const { upstream } = found

  const take = (): Held | undefined => {
    const picked = takeNode({ upstream, barrier: on.barrier, pid: on.worker.pid, tried, key: path })
    if (picked.kind === 'sealed' && on.barrier && tried.size === 0) on.barrier.counts.refused += 1
    return picked.kind === 'held' ? picked.held : undefined
  }
  const connect = (taken: Held, left: number): void => {
    held = taken
    bypass ||= taken.bypass
    tried.add(taken.target)
    nodes.push(taken.target.name)
    const attempt = send({
      agent: false,
      host: taken.target.host,
      port: taken.target.port,
      method: request.method ?? 'GET',
      path,
      headers: upgradeHeaders(request.rawHeaders, request.socket.remoteAddress ?? ''),
      setHost: false
    })
    const abort = () => attempt.destroy()
    client.once('close', abort)
    attempt.on('error', () => {
      client.off('close', abort)
      if (upgraded || client.destroyed) return
      taken.release()
      const next = left > 0 ? take() : undefined
      if (next) connect(next, left - 1)
      else refuse(nginxPage(502))
    })
    attempt.once('response', answer => {
      answer.resume()
      refuse({ ...nginxPage(answer.statusCode ?? 502), body: '' })
    })
    attempt.once('upgrade', (answer, node, nodeHead) => {
      status = 101
      upgraded = true
      taken.promote()
      client.write(rawHead(101, answer.rawHeaders))
      if (nodeHead.length > 0) client.write(nodeHead)
      if (head.length > 0) node.write(head)
      node.on('error', () => node.destroy())
      node.once('close', () => client.destroy())
      client.once('close', () => node.destroy())
      node.pipe(client).pipe(node)
    })
    attempt.end()
  }
  const first = take()
  if (first) connect(first, upstream.retries)
  else refuse(nginxPage(503))
}

const rawHead = (status: number, rawHeaders: readonly string[]): string => {
  let head = `HTTP/1.1 ${status} ${status === 101 ? 'Switching Protocols' : 'Refused'}\r\n`
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`
  return `${head}\r\n`
}

const rawAnswer = ({ status, headers, body }: Answer): string =>
  rawHead(status, [
    ...Object.entries(headers).flat(),
    'content-length',
    String(Buffer.byteLength(body)),
    'connection',
    'close'
  ]) + body
