import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { FailureKind } from './options.ts'
import type { Outcome } from './send.ts'

/** No close frame came (RFC 6455, 7.4.1). */
const BROKEN_OFF = 1006
const MESSAGE_MS = 100

/**
 * Opens a websocket, sends a message every 100 ms, and closes it after `openMs`. A server that closes it earlier with a close
 * frame has told the client to connect again, so that is no failure. Never rejects.
 * @param timeoutMs the longest time until it is open
 */
export async function openWebsocket(url: URL, openMs: number, timeoutMs: number): Promise<Outcome> {
  const socket = new WebSocket(url.href.replace(/^http/, 'ws'), { handshakeTimeout: timeoutMs })
  let pod: string | undefined
  let status: number | undefined
  let detail = ''
  socket.on('upgrade', answer => (pod = answer.headers['x-pod']?.toString()))
  socket.on('unexpected-response', (_, answer) => {
    status = answer.statusCode
    answer.resume()
    socket.terminate()
  })
  socket.on('error', error => (detail = error.message))
  const messages = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send('x'), MESSAGE_MS)
  let end: NodeJS.Timeout | undefined
  let opened = false
  socket.on('open', () => {
    opened = true
    end = setTimeout(() => socket.close(1000), openMs)
  })
  const [code] = (await once(socket, 'close').catch(() => [BROKEN_OFF])) as [number]
  clearInterval(messages)
  clearTimeout(end)
  if (opened && code !== BROKEN_OFF) return { ok: true, pod }
  const kind: FailureKind = status !== undefined ? 'status' : opened ? 'truncated' : 'reset'
  return { ok: false, kind, status, pod, detail: detail || `closed with ${code}` }
}
