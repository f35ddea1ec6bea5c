import { request as send, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { placeOf } from '../kubelet/addresses.ts'
import { reportOf } from './access-log.ts'
import { nginxPage, type Answer } from './answer.ts'
import { askedOf, type ProxyWorker } from './exchange.ts'
import { upgradeHeaders } from './headers.ts'

/**
 * A protocol upgrade (websocket), with nginx's retries: another node is tried if one fails before its answer. After the
 * node's 101 the connection is a long-lived one.
 */
export function proxyUpgrade(on: ProxyWorker, request: IncomingMessage, client: Duplex, head: Buffer): void {
  const report = reportOf(on, request)
  const path = request.url ?? '/'
  client.on('error', () => client.destroy())
  const found = on.router.find(request)
  const id = on.nextId()
  const nodes: string[] = []
  let status = 499
  let upgraded = false

  client.once('close', () => {
    on.worker.run(() => on.lua.log(id))
    report({ status, nodes, truncated: false, upgraded })
  })
  const refuse = (answer: Answer): void => {
    status = answer.status
    client.end(rawAnswer(answer))
  }
  if (found.kind !== 'upstream')
    return refuse(nginxPage(found.kind === 'no-route' ? 404 : found.kind === 'upstream-gone' ? 502 : 503))
  const refused = on.lua.access(id, found.place, askedOf(request))
  if (refused !== 0) return refuse(nginxPage(refused))

  const connect = (tries: number | undefined): void => {
    const balanced = on.lua.balance(id)
    if (balanced.kind === 'refused') return refuse(nginxPage(tries === undefined ? balanced.status : 502))
    const left = tries ?? balanced.more
    const { target } = balanced
    nodes.push(target.name)
    const attempt = send({
      agent: false,
      ...placeOf(target.host, target.port),
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
      if (left > 0) connect(left - 1)
      else refuse(nginxPage(502))
    })
    attempt.once('response', answer => {
      answer.resume()
      refuse({ ...nginxPage(answer.statusCode ?? 502), body: '' })
    })
    attempt.once('upgrade', (answer, node, nodeHead) => {
      status = 101
      upgraded = true
      on.lua.header(id, 101, '')
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
  connect(undefined)
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
