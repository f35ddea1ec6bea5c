import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Kubernetes } from './server.ts'

/** How a process in a pod finds its account: a folder, and two environment variables. */
export interface MountedAccount {
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}

/**
 * Writes the administrator's account to files as Kubernetes mounts them into a pod.
 * @throws Error for a server without TLS, which no pod would use
 */
export async function mountAccount(
  { ca, token, port }: Kubernetes,
  folder: string,
  namespace: string
): Promise<MountedAccount> {
  if (ca === undefined) throw new Error('a pod talks to the API server over TLS')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'ca.crt'), ca)
  await writeFile(join(folder, 'token'), token, { mode: 0o600 })
  await writeFile(join(folder, 'namespace'), namespace)
  return { folder, env: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(port) } }
}
