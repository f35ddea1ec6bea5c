import { connect } from 'node:net'
import type { HookReply } from '../build/hook.ts'
import type { HookCall } from './callers.ts'

/** The raw answer to one hook. The returned function parses it later, once all answers have arrived. */
interface Raw {
  readonly calledAt: number
  readonly at: number
  readonly text: string
}

/**
 * Calls a hook with minimal code, because five hundred requests of a client library in one process take longer than the
 * agent's answers. In a cluster every pod has its own process. Rejects if there is no answer.
 */
export async function rawCall({ host, port, from, query }: HookCall): Promise<() => HookReply> {
  const { promise, resolve, reject } = Promise.withResolvers<Raw>()
  const calledAt = performance.now()
  const socket = connect({ host: host ?? '127.0.0.1', port, localAddress: from })
  let text = ''
  let at = calledAt
  socket.setEncoding('utf8')
  socket.write(
    `POST /v1/prestop${query ? `?${query}` : ''} HTTP/1.1\r\nhost: ${host}:${port}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`
  )
  socket.on('data', (chunk: string) => {
    text += chunk
    at = performance.now()
  })
  socket.once('error', reject)
  socket.once('end', () => resolve({ calledAt, at, text }))
  const raw = await promise
  return () => read(raw)
}

/** @throws Error unless the text is a complete answer with a length */
function read({ calledAt, at, text }: Raw): HookReply {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2)
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1])
  const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1])
  if (!(status > 0) || Buffer.byteLength(body) !== length) throw new Error(`no answer to a hook: ${text}`)
  return {
    status,
    body: JSON.parse(body) as HookReply['body'],
    calledAt,
    at,
    ms: at - calledAt,
    ranMs: at - calledAt
  }
}
