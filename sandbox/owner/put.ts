import { request } from 'node:http'

export interface AdminAccess {
  /** Such as `http://127.0.0.1:9180`. */
  readonly url: string
  readonly key: string
}

export interface AdminCall {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  /** The path after `/apisix/admin/`. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** `pkg/apisix/cluster.go:46`. */
const TIMEOUT_MS = 5000

/** The stand-ins' `User-Agent`, which separates them from the agent in a log of requests. */
export const OWNER_AGENT = 'sandbox-owner'

/** One call of the Admin API: its answer, parsed if it is JSON. Rejects on anything but a 2xx. */
export function callAdmin(admin: AdminAccess, { method, path, body, headers }: AdminCall): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const call = request(
      new URL(`/apisix/admin/${path}`, admin.url),
      {
        method,
        headers: {
          'x-api-key': admin.key,
          'user-agent': OWNER_AGENT,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
          ...headers
        },
        signal: AbortSignal.timeout(TIMEOUT_MS)
      },
      response => {
        let answer = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (answer += chunk))
        response.once('error', reject)
        response.once('end', () => {
          const status = response.statusCode ?? 0
          if (status >= 200 && status <= 299) resolve(parsed(answer))
          else reject(new Error(`${method} ${path}: status ${status} ${answer.slice(0, 200)}`))
        })
      }
    )
    call.once('error', reject)
    call.end(text)
  })
}

/** PUTs a whole object through the Admin API. Rejects on anything but a 2xx. */
export async function putObject(admin: AdminAccess, path: string, body: unknown): Promise<void> {
  await callAdmin(admin, { method: 'PUT', path, body })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
