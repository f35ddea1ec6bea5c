import type { ConnectionOptions } from 'node:tls'
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { RequestOptions } from 'node:https'
import { createRequire } from 'node:module'
import type * as ClientNode from '@kubernetes/client-node'
import type { Clock } from '../../base/clock.ts'

/** How the agent reaches the API server and identifies itself there. */
export interface Credentials {
  /** `https://10.0.0.1:6443`, or `http://…` for HTTP/2 without TLS. */
  readonly origin: string
  /** Called for every new connection, so that certificates that were rotated on disk are used. Rejects if a file is unreadable. */
  tls(): Promise<ConnectionOptions>
  /** `authorization` and the like, with lower-case names. Called for every request. */
  headers(): Promise<Readonly<Record<string, string>>>
  /** Call it after the server answered 401: it drops the cache. */
  refused(): void
}

/** The source of the credentials: a kubeconfig file (default: as kubectl finds it), or the pod's own account. */
export type CredentialSource =
  | { readonly kind: 'kubeconfig'; readonly file?: string }
  /** `account`: the folder in which Kubernetes mounts it. */
  | { readonly kind: 'in-cluster'; readonly account: string }

/** How long a token or the answer of an auth plugin is cached, in ms. */
const FRESH_MS = 10_000

/** @throws Error that names the file or the setting, if it has no usable cluster or user */
export function loadCredentials(source: CredentialSource, clock: Clock): Credentials {
  return source.kind === 'in-cluster'
    ? accountCredentials(source.account, clock)
    : kubeconfigCredentials(source, clock)
}

/**
 * A pod's own account: a folder with `token` and `ca.crt`; the environment names the API server
 * (kubernetes.io/docs/tasks/run-application/access-api-from-pod). The token is rotated on disk, so it is read again.
 *
 * @throws Error if the environment does not name the API server
 */
function accountCredentials(folder: string, clock: Clock): Credentials {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
  if (!host || !port) {
    throw new Error(
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: not in a pod; set kubernetes.kubeconfig'
    )
  }
  const { headers, refused } = cached(clock, () => readBearer(join(folder, 'token')))
  return {
    origin: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`).origin,
    tls: async () => ({ ca: await readFile(join(folder, 'ca.crt')) }),
    headers,
    refused
  }
}

type Headers = Awaited<ReturnType<Credentials['headers']>>

/** The headers that `read` returns, for a while, or until they are refused. */
function cached(clock: Clock, read: () => Promise<Headers>): Pick<Credentials, 'headers' | 'refused'> {
  let last: { readonly at: number; readonly headers: Promise<Headers> } | undefined
  return {
    headers() {
      if (!last || clock.now() - last.at > FRESH_MS) {
        const headers = read()
        // A failure is not cached: the next request asks again.
        headers.catch(() => (last = undefined))
        last = { at: clock.now(), headers }
      }
      return last.headers
    },
    refused: () => void (last = undefined)
  }
}

async function readBearer(file: string): Promise<Headers> {
  return { authorization: `Bearer ${(await readFile(file, 'utf8')).trim()}` }
}

type Kubeconfig = Extract<CredentialSource, { kind: 'kubeconfig' }>

/**
 * client-node reads every kind of kubeconfig and runs its auth plugins. It also loads the models of the whole API (60 MB, one
 * second). So it is loaded on demand: a pod has no kubeconfig.
 */
const load = createRequire(import.meta.url)

/**
 * @throws Error that names the file or the setting, if it has no usable cluster or user
 */
function kubeconfigCredentials(source: Kubeconfig, clock: Clock): Credentials {
  let config = loadConfig(source)
  const cluster = clusterOf(config)
  const { origin, pathname } = new URL(cluster.server)
  if (pathname !== '/') throw new Error(`API server ${cluster.server}: a path in the URL is not supported`)
  if (cluster.proxyUrl) throw new Error(`API server ${cluster.server}: proxy-url is not supported`)

  const options = async () => {
    const opts: RequestOptions = {}
    await config.applyToHTTPSOptions(opts)
    return opts
  }
  const cache = cached(clock, () => readHeaders(config, options))
  return {
    origin,
    async tls() {
      const { ca, cert, key, rejectUnauthorized, servername } = await options()
      return definedOnly({ ca, cert, key, rejectUnauthorized, servername })
    },
    headers: cache.headers,
    refused() {
      cache.refused()
      // Auth plugins cache their credentials until these expire. Only a new KubeConfig makes them ask again.
      config = reloaded(source) ?? config
    }
  }
}

function loadConfig(source: Kubeconfig): ClientNode.KubeConfig {
  const { KubeConfig } = load('@kubernetes/client-node') as typeof ClientNode
  const config = new KubeConfig()
  if (source.file === undefined) config.loadFromDefault()
  else config.loadFromFile(source.file)
  const cluster = clusterOf(config)
  // client-node refuses http:// unless TLS verification is off; without TLS there is nothing to verify.
  if (cluster.server.startsWith('http:')) {
    config.clusters = config.clusters.map(c => (c === cluster ? { ...c, skipTLSVerify: true } : c))
  }
  return config
}

/** Reads the kubeconfig again. If the file is just being replaced, the agent keeps the last good copy. */
function reloaded(source: Kubeconfig): ClientNode.KubeConfig | undefined {
  try {
    return loadConfig(source)
  } catch {
    return undefined
  }
}

function clusterOf(config: ClientNode.KubeConfig) {
  const cluster = config.getCurrentCluster()
  if (!cluster)
    throw new Error(`the kubeconfig has no cluster for its context "${config.getCurrentContext()}"`)
  if (!URL.canParse(cluster.server)) throw new Error(`"${cluster.server}" is not the URL of an API server`)
  return cluster
}

async function readHeaders(
  config: ClientNode.KubeConfig,
  options: () => Promise<RequestOptions>
): Promise<Headers> {
  const tokenFile = tokenFileOf(config)
  // client-node reads the file at most once a minute, and would continue to use a refused token.
  if (tokenFile !== undefined) return readBearer(tokenFile)
  const { headers, auth } = await options()
  const found: Record<string, string> = {}
  if (typeof auth === 'string') found['authorization'] = `Basic ${Buffer.from(auth).toString('base64')}`
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value === 'string') found[name.toLowerCase()] = value
  }
  return found
}

function tokenFileOf(config: ClientNode.KubeConfig): string | undefined {
  const { config: settings } = (config.getCurrentUser()?.authProvider ?? {}) as {
    config?: { tokenFile?: unknown }
  }
  return typeof settings?.tokenFile === 'string' ? settings.tokenFile : undefined
}

function definedOnly(options: Record<string, unknown>): ConnectionOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined && value !== null)
  )
}
