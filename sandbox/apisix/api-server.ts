import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { nginxPage, type Answer } from './answer.ts'
import { createFaults, faultAnswer, type Fault, type Faults } from './faults.ts'
import { listen, type Listener } from './server.ts'
import type { Worker } from './worker.ts'

/** One request to an API, with its whole body. */
export interface Ask {
  readonly method: string
  /** Decoded, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly socket: Socket
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
}

interface ApiServerOptions {
  readonly host: string
  readonly port: number
  /** `undefined`: never answer. */
  readonly handle: (ask: Ask) => Promise<Answer | undefined>
  readonly onConnection?: (socket: Socket) => void
  /** The largest body, in bytes; a longer one is answered 413. */
  readonly maxBody?: number
  /** The answer to such a body; nginx's page by default. */
  readonly tooLong?: Answer
}

/** A running Admin, Control or Barrier API. */
export interface Api {
  readonly url: string
  readonly listener: Listener
  readonly faults: Faults
  /** Calls `listener` with each request, before it is handled. */
  onAsk(listener: (ask: Ask) => void): void
  close(): Promise<void>
}

/** Lets the worker that accepted a connection handle its requests. A frozen worker handles them once it runs again. */
export function byWorker<W extends Pick<Worker, 'turn'>>(
  accept: (socket: Socket) => W,
  handle: (worker: W, ask: Ask) => Promise<Answer>
): Pick<ApiServerOptions, 'onConnection' | 'handle'> {
  const workers = new WeakMap<Socket, W>()
  return {
    onConnection: socket => workers.set(socket, accept(socket)),
    handle: async ask => {
      const worker = workers.get(ask.socket)
      await worker?.turn()
      return worker && (await handle(worker, ask))
    }
  }
}

/** A small JSON server: Admin, Control and Barrier API differ only in their `handle`. */
export async function serveApi(options: ApiServerOptions): Promise<Api> {
  const faults = createFaults()
  const listeners: ((ask: Ask) => void)[] = []
  const listener = await listen({
    host: options.host,
    port: options.port,
    ...(options.onConnection ? { onConnection: options.onConnection } : {}),
    onRequest: (request, response) => {
      // A bug in a handler is answered with nginx's 500 page. Otherwise it would look like a hang, or end the process.
      serve(request, response).catch(() => write(response, nginxPage(500)))
    }
  })

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    await listener.passage()
    const body = await readBody(request, options.maxBody ?? 8 * 1024 * 1024)
    if (body === undefined) return write(response, options.tooLong ?? nginxPage(413))
    const url = new URL(request.url ?? '/', 'http://api')
    const method = request.method ?? 'GET'
    const path = decode(url.pathname)
    const fault = faults.take(method, path)
    const ask: Ask = {
      method,
      path,
      query: url.searchParams,
      headers: request.headers,
      body,
      socket: request.socket,
      signal: gone.signal
    }
    for (const listener of listeners) listener(ask)
    const handle = (): Promise<Answer | undefined> => options.handle(ask)
    const answer = fault ? await misbehave(fault, handle, response) : await handle()
    await listener.passage()
    if (answer && !gone.signal.aborted) write(response, answer)
  }
  return {
    url: `http://${listener.host}:${listener.port}`,
    listener,
    faults,
    onAsk: listener => void listeners.push(listener),
    close: () => listener.close()
  }
}

const misbehave = async (
  fault: Fault,
  handle: () => Promise<Answer | undefined>,
  response: ServerResponse
): Promise<Answer | undefined> => {
  let answer: Answer | undefined
  switch (fault.kind) {
    case 'status':
      answer = faultAnswer(fault)
      break
    case 'hang':
      break
    case 'slow':
      await wait(fault.ms, undefined, { ref: false })
      answer = await handle()
      break
    case 'close-mid-body':
      writeHalf(response, (await handle()) ?? nginxPage(500))
      break
    case 'applied-but-timed-out':
      await handle()
      break
    case 'reset':
      response.socket?.resetAndDestroy()
      break
  }
  return answer
}

const write = (response: ServerResponse, answer: Answer): void => {
  if (response.headersSent) return
  response.writeHead(answer.status, { ...answer.headers, 'content-length': Buffer.byteLength(answer.body) })
  response.end(answer.body)
}

const writeHalf = (response: ServerResponse, answer: Answer): void => {
  const body = Buffer.from(answer.body)
  response.writeHead(answer.status, { ...answer.headers, 'content-length': body.length })
  response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.socket?.destroy())
}

const readBody = async (request: IncomingMessage, max: number): Promise<string | undefined> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size <= max) chunks.push(chunk)
  }
  return size > max ? undefined : Buffer.concat(chunks).toString('utf8')
}

const decode = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
