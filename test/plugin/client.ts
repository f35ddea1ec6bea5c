import { type Agent, type ClientRequest, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { eventually } from './eventually.ts'
import type { Gateway } from './gateway.ts'

export interface Reply {
  status: number
  backend: string | undefined
  host: string | undefined
  body: string
}

export interface Sending {
  method?: string
  headers?: Record<string, string>
  body?: string
  /** A promise, or ms, to wait for before the second half of the body. nginx connects only after it has the whole body. */
  slowly?: number | Promise<unknown>
  agent?: Agent
  /** Called with the request once it is sent. */
  started?: (request: ClientRequest) => void
}

/** Sends one request, on its own connection unless an agent is given. Rejects if the connection breaks. */
export async function send(url: string, options: Sending = {}): Promise<Reply> {
  const { method = 'GET', headers = {}, body, slowly, agent } = options
  return await new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const out = request(url, {
      method,
      headers: { ...headers, ...length },
      ...(agent ? { agent } : { agent: false })
    })
    out.setTimeout(30_000, () => out.destroy(new Error('no answer within 30 s')))
    out.on('error', reject)
    out.on('response', response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('error', reject)
      response.on('end', () => {
        if (!response.complete) return reject(new Error('the answer broke off'))
        const { 'x-backend': backend, 'x-host': host } = response.headers
        resolve({
          status: response.statusCode ?? 0,
          backend: backend === undefined ? undefined : String(backend),
          host: host === undefined ? undefined : String(host),
          body: text
        })
      })
    })
    options.started?.(out)
    if (body !== undefined && slowly !== undefined) {
      out.write(body.slice(0, body.length >> 1))
      void (typeof slowly === 'number' ? wait(slowly) : slowly).then(() =>
        out.end(body.slice(body.length >> 1))
      )
    } else out.end(body)
  })
}

/** Sends `n` requests one after another, each on a new connection, so that every worker gets some. */
export async function many(url: string, n: number): Promise<Reply[]> {
  const replies: Reply[] = []
  for (let i = 0; i < n; i += 1) replies.push(await send(url))
  return replies
}

/** Sends `n` requests at once, each with its number as the argument `k`. */
export const atOnce = async (url: string, n: number): Promise<Reply[]> =>
  await Promise.all(Array.from({ length: n }, (_, k) => send(`${url}&k=${k}`)))

/** Begins uploads. Resolves once their nodes are picked, and nginx waits for the rest of their bodies, with a function that sends the rest. */
export async function uploads(gateway: Gateway, ...paths: readonly string[]) {
  const picked = async () => Number(await gateway.door('/picked'))
  const before = await picked()
  const { promise: slowly, resolve } = Promise.withResolvers<void>()
  const body = 'x'.repeat(4000)
  const sent = paths.map(path => send(gateway.url + path, { method: 'POST', body, slowly }))
  await eventually('a node is picked for each', async () => (await picked()) === before + paths.length)
  return async () => {
    resolve()
    return await Promise.all(sent)
  }
}

/** Returns the names of the backends that answered, each once, sorted. */
export const backends = (replies: readonly Reply[]): string[] =>
  [...new Set(replies.map(r => r.backend ?? `status ${r.status}`))].sort()
