import https from 'node:https'
import type { ConnectionOptions } from 'node:tls'
import http from 'node:http'
import { CodedError, codeForStatus, type Api, type ErrorCode } from '../../base/errors.ts'
import { createJsonReader, jsonOr, readJson, TooLong, isRecord } from '../../base/read.ts'
import { networkMeaning, type Route } from '../../config/config.ts'

export interface TlsOptions {
  /** The CAs (PEM), read at each new connection because files are replaced. Absent: the CAs of the system. */
  readonly ca?: (() => string) | undefined
  /** The name that the certificate must have; absent: the host of the URL. */
  readonly serverName?: string | undefined
}

/** The TLS options for one new connection. No variable of the environment can switch the check of the certificate off. */
const tlsOf = ({ ca, serverName }: TlsOptions): ConnectionOptions => ({
  rejectUnauthorized: true,
  ...(ca && { ca: ca() }),
  ...(serverName !== undefined && { servername: serverName })
})

/** Connections are kept as long as their server keeps them. Each new connection uses the current CA. */
class TlsAgent extends https.Agent {
  readonly #tls: TlsOptions

  constructor(pool: https.AgentOptions, tls: TlsOptions) {
    // A resumed TLS session would skip the check against a new CA.
    super({ ...pool, maxCachedSessions: 0 })
    this.#tls = tls
  }

  override createConnection(
    ...[options, done]: Parameters<https.Agent['createConnection']>
  ): ReturnType<https.Agent['createConnection']> {
    return super.createConnection({ ...options, ...tlsOf(this.#tls) }, done)
  }
}

interface ExchangeOptions extends TlsOptions {
  /** Whether connections are kept and reused. `false`: every request opens a new connection. */
  readonly keepAlive: boolean
  /** The most connections to one host at a time; default: no limit. Further calls wait, and their time counts. */
  readonly maxSockets?: number
  /** Largest body accepted, in bytes. */
  readonly maxBytes: number
}

interface HttpOptions extends ExchangeOptions {
  readonly api: Api
  /** Called with the error of every call that failed. The caller gets the error too. */
  readonly failed?: ((error: unknown) => void) | undefined
}

export interface Call {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'PATCH' | 'POST' | 'DELETE'
  readonly url: string
  /** The limit for the whole exchange, to the last byte of the body, however slowly the body comes. */
  readonly timeoutMs: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
  /** Less than `maxBytes` of the client. */
  readonly maxBytes?: number | undefined
  /** A further status, besides 2xx, whose body is returned as the answer. */
  readonly alsoFine?: number
  /** Called with each item of the answer's lists as soon as it has come; its result takes the item's place. It may throw CodedError. */
  readonly each?: (item: unknown) => unknown
  /** Uses a new connection, which shows which gateway has the address now. */
  readonly fresh?: boolean
}

/** The answer, whatever its status. */
interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly data: string
}

/** The exchange took longer than `timeoutMs`. */
class TooSlow extends Error {}

/** The reader of an answer with this status. `undefined`: it goes to `data`. */
type ReaderOf = (status: number) => ReturnType<typeof createJsonReader> | undefined

/** The client of every call to a gateway and to the Admin API: see docs/decisions/0073-one-http-client.md. */
export function createExchange(options: ExchangeOptions) {
  const { keepAlive, maxSockets = Infinity, maxBytes, ...tls } = options
  const agents = {
    'http:': new http.Agent({ keepAlive, maxSockets }),
    'https:': new TlsAgent({ keepAlive, maxSockets }, tls)
  }
  const send = ({ method, url, headers, body, fresh = false }: Call): http.ClientRequest => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const isTls = url.startsWith('https:')
    return (isTls ? https : http)
      .request(url, {
        method,
        ...(fresh ? { agent: false, ...tlsOf(tls) } : { agent: agents[isTls ? 'https:' : 'http:'] }),
        headers: {
          accept: 'application/json',
          ...headers,
          ...(text !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text)
          })
        }
      })
      .end(text)
  }
  return {
    /**
     * One exchange. It always settles: by its answer, an error, the end of its connection, its signal or its time. Redirects are not followed,
     * and an upgrade counts as a broken connection. It uses no proxy: HTTP_PROXY is for traffic that leaves the cluster.
     *
     * @throws Error with Node's `code` if the connection fails or breaks, TooLong, TooSlow, or the reason of the signal
     */
    async ask(call: Call, readerOf?: ReaderOf): Promise<Answer> {
      const { promise, resolve, reject } = Promise.withResolvers<Answer>()
      call.signal?.throwIfAborted()
      const request = send(call)
      // An answer that came while this process could not run is read first: timers fire before sockets are read.
      const slow = () => reject(new TooSlow(`more than ${call.timeoutMs} ms`))
      const late = setTimeout(() => setImmediate(slow), call.timeoutMs)
      const abort = () => reject(call.signal?.reason as Error)
      call.signal?.addEventListener('abort', abort, { once: true })
      request.on('error', reject)
      // Node reports some ends, such as the answer 101, by this event only.
      request.once('close', () => reject(new Error('the connection was closed without an answer')))
      request.once('response', response => {
        const { statusCode = 0, headers } = response
        const reader = readerOf?.(statusCode)
        const chunks: Buffer[] = []
        const most = call.maxBytes ?? maxBytes
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          try {
            if (bytes > most) throw new TooLong(`more than ${most} bytes`)
            if (reader) reader.write(chunk)
            else chunks.push(chunk)
          } catch (error) {
            reject(error)
            response.destroy()
          }
        })
        response.on('error', reject)
        // At once: after its end, the connection would be kept.
        if (statusCode < 200) request.destroy(new Error(`${statusCode} is no final answer`))
        response.once('end', () =>
          resolve({ status: statusCode, headers, data: Buffer.concat(chunks).toString() })
        )
      })
      try {
        return await promise
      } catch (error) {
        request.destroy()
        throw error
      } finally {
        clearTimeout(late)
        call.signal?.removeEventListener('abort', abort)
      }
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    }
  }
}

/** How much of a refusal is read, in characters. */
const LONGEST_MESSAGE = 4096

export function createHttp({ api, failed, ...options }: HttpOptions) {
  const exchange = createExchange(options)
  return {
    /**
     * One exchange, with JSON in both directions.
     * @throws CodedError for everything else: no connection, a timeout, an error status, a body that is not JSON
     */
    async json(call: Call): Promise<unknown> {
      const reader = createJsonReader({ each: call.each })
      const isFine = (status: number) => (status >= 200 && status < 300) || status === call.alsoFine
      try {
        const { status, data } = await exchange
          .ask(call, status => (isFine(status) ? reader : undefined))
          .catch((error: unknown) => {
            throw error instanceof CodedError ? error : failure(api, call, error as NodeJS.ErrnoException)
          })
        const text = data.slice(0, LONGEST_MESSAGE)
        const json = jsonOr(() => (isFine(status) ? reader.end() : readJson(text)))
        if (json !== undefined && isFine(status)) return json
        throw refusal(api, call, { status, text, json })
      } catch (error) {
        failed?.(error)
        throw error
      }
    },
    close: () => exchange.close()
  }
}

function failure(api: Api, call: Call, error: NodeJS.ErrnoException): CodedError {
  const code: ErrorCode = call.signal?.aborted
    ? 'ABORTED'
    : error instanceof TooSlow
      ? `${api}_TIMEOUT`
      : error instanceof TooLong
        ? `${api}_TOO_LARGE`
        : `${api}_UNREACHABLE`
  if (code !== `${api}_UNREACHABLE`)
    return new CodedError(code, `${describe(call)}${error instanceof TooLong ? ` (${error.message})` : ''}`)
  const meaning = networkMeaning(error.code, ROUTES[api])
  const why = `${describe(call)} (${error.code ?? error.message})`
  return new CodedError(code, why, { network: error.code, meaning })
}

const ROUTES: Readonly<Record<Api, Route>> = {
  ADMIN: { address: 'apisix.admin.url', scheme: 'apisix.admin.url', ca: 'apisix.admin.caFile' },
  CONTROL: { address: 'apisix.gateways and apisix.control.port', ca: '' },
  BARRIER: {
    address: 'apisix.gateways and apisix.barrier.port',
    scheme: 'apisix.barrier.scheme',
    ca: 'apisix.barrier.caFile'
  }
}

type Refused = { readonly status: number; readonly text: string; readonly json: unknown }

function refusal(api: Api, call: Call, { status, text, json = text }: Refused): CodedError {
  const code = codeForStatus(api, status, text)
  const serverMessage = sentence(json)
  // Only the gateway knows both versions.
  const meaning = code === 'BARRIER_VERSION' ? serverMessage : ''
  const why = `${describe(call)} -> ${status}${meaning ? '' : serverMessage && ` "${serverMessage}"`}`
  return new CodedError(code, why, { status, serverMessage, meaning })
}

/** The server's message, short enough for a log line. */
function sentence(body: unknown): string {
  const message = isRecord(body) ? (body.error_msg ?? body.message) : body
  return typeof message === 'string' ? message.replace(/\s+/g, ' ').trim().slice(0, 300) : ''
}

function describe(call: Call): string {
  const url = URL.parse(call.url)
  return `${call.method} ${url ? `${url.origin}${url.pathname}${url.search}` : 'an invalid URL'}`
}
