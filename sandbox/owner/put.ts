import { request } from 'node:http'

export interface AdminAccess {
  /** Such as `http://127.0.0.1:9180`. */
  readonly url: string
  readonly key: string
}

/** `pkg/apisix/cluster.go:46`. */
const TIMEOUT_MS = 5000

/** PUTs a whole object through the Admin API. Rejects on anything but a 2xx. */
export function putObject(admin: AdminAccess, path: string, body: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body)
    const call = request(
      new URL(`/apisix/admin/${path}`, admin.url),
      {
        method: 'PUT',
        headers: {
          'x-api-key': admin.key,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text)
        },
        signal: AbortSignal.timeout(TIMEOUT_MS)
      },
      response => {
        response.resume()
        response.once('error', reject)
        response.once('end', () => {
          const status = response.statusCode ?? 0
          if (status >= 200 && status <= 299) resolve()
          else reject(new Error(`PUT ${path}: status ${status}`))
        })
      }
    )
    call.once('error', reject)
    call.end(text)
  })
}
