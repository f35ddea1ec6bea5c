import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { FRESH_MS, type Credentials } from './credentials.ts'

/**
 * A pod's own account: a folder with `token` and `ca.crt`; the environment names the API server
 * (kubernetes.io/docs/tasks/run-application/access-api-from-pod). The token is rotated on disk, so it is read again.
 *
 * @throws Error if the environment does not name the API server
 */
export function accountCredentials(folder: string, clock: Clock): Credentials {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
  if (!host || !port) {
    throw new Error(
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: not in a pod; set kubernetes.kubeconfig'
    )
  }
  let cached: { readonly at: number; readonly headers: Promise<Readonly<Record<string, string>>> } | undefined
  const readToken = async () => {
    const token = await readFile(join(folder, 'token'), 'utf8')
    return { authorization: `Bearer ${token.trim()}` }
  }
  return {
    origin: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`).origin,
    tls: async () => ({ ca: await readFile(join(folder, 'ca.crt')) }),
    headers() {
      if (!cached || clock.now() - cached.at > FRESH_MS) {
        const headers = readToken()
        // A failure is not cached: the next request reads the token again.
        headers.catch(() => (cached = undefined))
        cached = { at: clock.now(), headers }
      }
      return cached.headers
    },
    refused: () => void (cached = undefined)
  }
}
