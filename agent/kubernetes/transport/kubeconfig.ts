import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { createRequire } from 'node:module'
import type { ConnectionOptions } from 'node:tls'
import type * as ClientNode from '@kubernetes/client-node'
import type { Clock } from '../../base/clock.ts'
import { FRESH_MS, type Credentials, type CredentialSource } from './credentials.ts'

type Kubeconfig = Extract<CredentialSource, { kind: 'kubeconfig' }>

/**
 * client-node reads every kind of kubeconfig and runs its auth plugins. It also loads the models of the whole API (60 MB, one
 * second). So it is loaded on demand: a pod has no kubeconfig.
 */
const load = createRequire(import.meta.url)

/**
 * @throws Error that names the file or the setting, if it has no usable cluster or user
 */
export function kubeconfigCredentials(source: Kubeconfig, clock: Clock): Credentials {
  let config = loadConfig(source)
  const cluster = clusterOf(config)
  const { origin, pathname } = new URL(cluster.server)
  if (pathname !== '/') throw new Error(`API server ${cluster.server}: a path in the URL is not supported`)
  if (cluster.proxyUrl) throw new Error(`API server ${cluster.server}: proxy-url is not supported`)

  let cached: { readonly at: number; readonly headers: Promise<Readonly<Record<string, string>>> } | undefined
  const options = async () => {
    const opts: RequestOptions = {}
    await config.applyToHTTPSOptions(opts)
    return opts
  }
  return {
    origin,
    async tls() {
      const { ca, cert, key, rejectUnauthorized, servername } = await options()
      return definedOnly({ ca, cert, key, rejectUnauthorized, servername })
    },
    headers() {
      if (!cached || clock.now() - cached.at > FRESH_MS) {
        const headers = readHeaders(config, options)
        // A failure is not cached: the next request asks again.
        headers.catch(() => (cached = undefined))
        cached = { at: clock.now(), headers }
      }
      return cached.headers
    },
    refused() {
      cached = undefined
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
): Promise<Readonly<Record<string, string>>> {
  const tokenFile = tokenFileOf(config)
  // client-node reads the file at most once a minute, and would continue to use a refused token.
  if (tokenFile !== undefined) return bearer((await readFile(tokenFile, 'utf8')).trim())
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

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

function definedOnly(options: Record<string, unknown>): ConnectionOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined && value !== null)
  )
}
