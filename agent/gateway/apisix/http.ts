import http from 'node:http'
import { create, isAxiosError } from 'axios'

import { CodedError, codeForStatus, isSuccess, type Api, type ErrorCode } from '../../base/errors.ts'
import { networkMeaning, type Route } from '../../base/network.ts'
import { createLean, TooLong, type Answer, type Call, type HttpOptions } from './lean.ts'
import { isRecord } from './nodes.ts'
import { TlsAgent } from './tls-agent.ts'

export interface HttpClient {
  /**
   * One exchange, with JSON in both directions.
   * @throws CodedError for everything else: no connection, a timeout, an error status, a body that is not JSON
   */
  json(call: Call): Promise<unknown>
  readonly close: () => void
}

interface Transport {
  exchange(call: Call, signal: AbortSignal): Promise<Answer>
  close(): void
}

export function createHttp(options: HttpOptions): HttpClient {
  const { api } = options
  const transport = api === 'BARRIER' ? createLean(options) : withAxios(options)
  return {
    async json(call) {
      try {
        return parse(api, call, await exchange(transport, api, call))
      } catch (error) {
        options.failed?.(error)
        throw error
      }
    },
    close: () => transport.close()
  }
}

function withAxios(options: HttpOptions): Transport {
  const pool = { keepAlive: options.keepAlive, maxSockets: options.keepAlive ? 32 : Infinity }
  const httpAgent = new http.Agent(pool)
  const httpsAgent = new TlsAgent(pool, options)
  const client = create({
    httpAgent,
    httpsAgent,
    proxy: false, // HTTP_PROXY is for traffic that leaves the cluster
    maxRedirects: 0,
    maxContentLength: options.maxBytes,
    responseType: 'text',
    transformResponse: text => text as unknown,
    validateStatus: () => true
  })
  return {
    exchange: ({ method, url, headers, body }, signal) =>
      client.request<string>({
        method,
        url,
        headers: { Accept: 'application/json', 'Content-Type': 'application/json', ...headers },
        data: body === undefined ? undefined : JSON.stringify(body),
        signal
      }),
    close() {
      httpAgent.destroy()
      httpsAgent.destroy()
    }
  }
}

async function exchange(transport: Transport, api: Api, call: Call): Promise<Answer> {
  const tooSlow = AbortSignal.timeout(call.timeoutMs)
  try {
    return await transport.exchange(call, call.signal ? AbortSignal.any([call.signal, tooSlow]) : tooSlow)
  } catch (error) {
    throw failure(api, call, error, tooSlow.aborted)
  }
}

function failure(api: Api, call: Call, error: unknown, late: boolean): CodedError {
  const { code: told, message } = error as NodeJS.ErrnoException
  const tooLong = error instanceof TooLong || (isAxiosError(error) && message.includes('maxContentLength'))
  const code: ErrorCode = call.signal?.aborted
    ? 'ABORTED'
    : late
      ? `${api}_TIMEOUT`
      : tooLong
        ? `${api}_TOO_LARGE`
        : `${api}_UNREACHABLE`
  // The AxiosError is not passed on as `cause`: it holds the request's headers, and so the key.
  if (code !== `${api}_UNREACHABLE`) return new CodedError(code, describe(call))
  const meaning = networkMeaning(told, ROUTES[api])
  return new CodedError(code, `${describe(call)} (${told ?? message})`, { network: told, meaning })
}

const ROUTES: Readonly<Record<Api, Route>> = {
  ADMIN: { address: 'apisix.admin.url', scheme: 'apisix.admin.url', ca: 'apisix.admin.caFile' },
  CONTROL: {
    address: 'apisix.gateways and apisix.control.port',
    scheme: 'apisix.control.scheme',
    ca: 'NODE_EXTRA_CA_CERTS, in the environment of the agent'
  },
  BARRIER: {
    address: 'apisix.gateways and apisix.barrier.port',
    scheme: 'apisix.barrier.scheme',
    ca: 'apisix.barrier.caFile'
  }
}

function parse(api: Api, call: Call, { status, data }: Answer): unknown {
  const [json, isJson] = tryJson(data)
  if (isJson && (isSuccess(status) || status === call.alsoFine)) return json
  const code = isSuccess(status) ? (`${api}_GARBLED` as const) : codeForStatus(api, status, data)
  const said = sentence(isJson ? json : data)
  throw new CodedError(code, `${describe(call)} -> ${status}${said && ` "${said}"`}`, { status, said })
}

/** The server's message, short enough for a log line. */
function sentence(body: unknown): string {
  const told = isRecord(body) ? (body.error_msg ?? body.message) : body
  return typeof told === 'string' ? told.replace(/\s+/g, ' ').trim().slice(0, 300) : ''
}

function tryJson(text: string): [json: unknown, isJson: boolean] {
  try {
    return [JSON.parse(text), true]
  } catch {
    return [undefined, false]
  }
}

function describe(call: Call): string {
  const url = URL.parse(call.url)
  return `${call.method} ${url ? `${url.origin}${url.pathname}${url.search}` : 'an invalid URL'}`
}
