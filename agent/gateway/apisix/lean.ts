import http from 'node:http'
import https from 'node:https'
import type { Api } from '../../base/errors.ts'
import { TlsAgent, tlsOf, type TlsOptions } from './tls-agent.ts'

export interface HttpOptions extends TlsOptions {
  readonly api: Api
  /** Whether connections are kept and reused. `false`: every request opens a new connection. */
  readonly keepAlive: boolean
  /** Largest body accepted, in bytes. */
  readonly maxBytes: number
  /** Called with the error of every call that failed. The caller gets the error too. */
  readonly failed?: ((error: unknown) => void) | undefined
}

export interface Call {
  readonly method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE'
  readonly url: string
  /** The limit for the whole exchange, to the last byte of the body, however slowly the body comes. */
  readonly timeoutMs: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
  /** A further status, besides 2xx, whose body is returned as the answer. */
  readonly alsoFine?: number
  /** Uses a new connection, which shows which gateway has the address now. Only the barrier's client reads this field. */
  readonly fresh?: boolean
}

/** The answer, whatever its status. */
export interface Answer {
  readonly status: number
  readonly data: string
}

/** The answer is longer than `maxBytes`, and was not read to its end. */
export class TooLong extends Error {
  override readonly name = 'TooLong'
}

/**
 * One exchange without a library, for the calls that every drain waits for: see
 * docs/decisions/0015-the-barrier-without-axios.md. Redirects are not followed.
 *
 * @throws Error with Node's `code` if the connection fails or breaks, TooLong, or the reason of the signal
 */
export function createLean({ keepAlive, maxBytes, ...tls }: Omit<HttpOptions, 'api' | 'failed'>): {
  exchange(call: Call, signal: AbortSignal): Promise<Answer>
  close(): void
} {
  const agents = {
    'http:': new http.Agent({ keepAlive }),
    'https:': new TlsAgent({ keepAlive }, tls)
  }
  return {
    exchange({ method, url, headers, body, fresh = false }, signal) {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const isTls = url.startsWith('https:')
      return new Promise((resolve, reject) => {
        const request = (isTls ? https : http).request(url, {
          method,
          ...(fresh ? { agent: false, ...tlsOf(tls) } : { agent: agents[isTls ? 'https:' : 'http:'] }),
          signal,
          headers: {
            accept: 'application/json',
            ...headers,
            ...(text !== undefined && {
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(text)
            })
          }
        })
        request.once('error', reject)
        request.once('response', response => {
          let data = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => {
            data += chunk
            if (data.length > maxBytes) response.destroy(new TooLong(`more than ${maxBytes} bytes`))
          })
          response.once('error', reject)
          response.once('end', () => resolve({ status: response.statusCode ?? 0, data }))
        })
        request.end(text)
      })
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    }
  }
}
