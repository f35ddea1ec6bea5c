import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** The reaction of the stub to a request, once it has received all of it. */
export type Act = (socket: Socket) => void

export interface Stub {
  readonly url: string
  readonly port: number
  /** All requests, in order, each with the address to which it was sent. */
  readonly requests: { readonly to: string; readonly text: string }[]
  /** Connections that the client has ended. */
  readonly left: () => number
  close(): Promise<void>
}

/** Starts a stand-in for the agent. Each request gets the next act, and then the last act is repeated. */
export async function startStub(
  acts: readonly Act[],
  hosts: readonly string[] = ['127.0.0.1']
): Promise<Stub> {
  const requests: Stub['requests'] = []
  const open = new Set<Socket>()
  let left = 0
  const serve = (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket)).once('end', () => (left += 1))
    socket.on('error', () => {})
    let text = ''
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part
      if (!text.endsWith('\r\n\r\n')) return
      const act = acts[Math.min(requests.length, acts.length - 1)]
      requests.push({ to: socket.localAddress ?? '', text })
      act?.(socket)
    })
  }
  const servers: Server[] = []
  let port = 0
  for (const host of hosts) {
    const server = createServer(serve).listen(port, host)
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    servers.push(server)
  }
  return {
    url: `http://${hosts[0]}:${port}`,
    port,
    requests,
    left: () => left,
    async close() {
      for (const socket of open) socket.destroy()
      await Promise.all(servers.map(server => once(server.close(), 'close')))
    }
  }
}

const send = (status: number, body: unknown) => {
  const text = JSON.stringify(body)
  return `HTTP/1.1 ${status} x\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}

export const says =
  (status: number, body: unknown): Act =>
  socket =>
    void socket.end(send(status, body))

export const DRAINED = {
  result: 'drained',
  evidence: 'barrier',
  elapsedMs: 4,
  why: 'every gateway avoids it'
}
export const NOTHING = {
  result: 'unproved',
  evidence: 'none',
  elapsedMs: 0,
  why: 'the reserve is all there is'
}

export const answers = says(200, DRAINED)
export const refuses = (status: number, error: string) => says(status, { error, why: 'because' })

/** Sends the answer in chunks of a few bytes, each in its own packet. */
export const chunked: Act = socket => {
  const pieces = JSON.stringify(DRAINED).match(/.{1,9}/g) ?? []
  const parts = [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    ...pieces.map(piece => `${piece.length.toString(16)}\r\n${piece}\r\n`),
    '0\r\n\r\n'
  ]
  const next = () => {
    const part = parts.shift()
    if (part === undefined) socket.end()
    else socket.write(part, () => setImmediate(next))
  }
  next()
}

/** Sends half of the answer, and then ends the connection. */
export const cut: Act = socket => void socket.end(send(200, DRAINED).slice(0, -20))

/** Never answers the request. */
export const hangs: Act = () => {}

/** Closes the connection after `ms`, like an agent that held the hook and was then killed. */
export const holdsAndDies =
  (ms: number): Act =>
  socket =>
    void setTimeout(() => socket.destroy(), ms)

export const gibberish: Act = socket => void socket.end('SSH-2.0-OpenSSH_9.6\r\n')
