import { request as send, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { nginxPage, type Answer } from './answer.ts'
import { destinationOf } from './destination.ts'
import type { ProxyWorker } from './exchange.ts'
import { upgradeHeaders } from './headers.ts'
import { takeNode } from './pick.ts'

/** A protocol upgrade (websocket): one try. After the node's 101 the connection counts as `long`. */
export function proxyUpgrade(on: ProxyWorker, request: IncomingMessage, client: Duplex, head: Buffer): void {
  const started = performance.now()
  const path = request.url ?? '/'
  client.on('error', () => client.destroy())
  const found = destinationOf(on.router, request)
  const picked =
    found.kind === 'upstream'
      ? takeNode({
          upstream: found.upstream,
          barrier: on.barrier,
          pid: on.worker.pid,
          tried: new Set(),
          key: path
        })
      : undefined
  const held = picked?.kind === 'held' ? picked.held : undefined
  let status = 499
  let upgraded = false

  client.once('close', () => {
    held?.release()
    on.onAccess({
      time: Date.now(),
      elapsedMs: performance.now() - started,
      gateway: on.gateway,
      worker: on.worker.id,
      method: request.method ?? 'GET',
      path,
      status,
      nodes: held ? [held.target.name] : [],
      truncated: false,
      bypass: held?.bypass ?? false,
      moved: false,
      upgraded
    })
  })
  const refuse = (answer: Answer): void => {
    status = answer.status
    client.end(rawAnswer(answer))
  }
  if (picked?.kind === 'sealed' && on.barrier) on.barrier.counts.refused += 1
  if (!held)
    return refuse(nginxPage(found.kind === 'no-route' ? 404 : found.kind === 'upstream-gone' ? 502 : 503))

  const attempt = send({
    agent: false,
    host: held.target.host,
    port: held.target.port,
    method: request.method ?? 'GET',
    path,
    headers: upgradeHeaders(request.rawHeaders, request.socket.remoteAddress ?? ''),
    setHost: false
  })
  client.once('close', () => attempt.destroy())
  attempt.on('error', () => refuse(nginxPage(502)))
  attempt.once('response', answer => {
    answer.resume()
    refuse({ ...nginxPage(answer.statusCode ?? 502), body: '' })
  })
  attempt.once('upgrade', (answer, node, nodeHead) => {
    status = 101
    upgraded = true
    held.promote()
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
