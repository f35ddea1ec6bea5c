import { request } from 'node:http'
import { ranMs } from './apisix.ts'
import type { Ack, Proved, Unproved } from '../../agent/rules/drain/drain.ts'

/** An ack, or a refusal: only a refusal has `error`. */
export type HookBody = Partial<Omit<Proved, 'result' | 'evidence'> & Omit<Unproved, keyof Proved>> & {
  readonly result?: Ack['result']
  readonly evidence?: Ack['evidence']
  readonly error?: string
}

/** The answer and its time, by the monotonic clock in ms. Lower bounds use `ms`, upper bounds `ranMs`. */
export interface HookReply {
  readonly status: number
  readonly body: HookBody
  readonly calledAt: number
  readonly at: number
  readonly ms: number
  /** The part of `ms` in which this process could run, which load does not change. */
  readonly ranMs: number
}

/** Calls `/v1/prestop` from a pod's own address. Rejects if the signal aborts or there is no answer. */
export function callHook(options: {
  /** Default 127.0.0.1. */
  readonly host?: string
  readonly port: number
  readonly from: string
  readonly query?: string
  readonly signal?: AbortSignal | undefined
  /** Default POST. */
  readonly method?: 'GET'
}): Promise<HookReply> {
  const { promise, resolve, reject } = Promise.withResolvers<HookReply>()
  const calledAt = performance.now()
  const outgoing = request(
    {
      host: options.host ?? '127.0.0.1',
      port: options.port,
      localAddress: options.from,
      method: options.method ?? 'POST',
      path: `/v1/prestop${options.query ? `?${options.query}` : ''}`,
      agent: false,
      ...(options.signal && { signal: options.signal })
    },
    response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.once('error', reject)
      response.once('end', () => {
        const at = performance.now()
        // A client that disconnected gets nginx's 499, which has no body.
        if (text === '') return reject(new Error(`${response.statusCode} without a body`))
        const body = JSON.parse(text) as HookBody
        resolve({
          status: response.statusCode ?? 0,
          body,
          calledAt,
          at,
          ms: at - calledAt,
          ranMs: ranMs(calledAt, at)
        })
      })
    }
  )
  outgoing.once('error', reject)
  outgoing.end()
  return promise
}
