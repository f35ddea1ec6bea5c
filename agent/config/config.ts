import { readFileSync } from 'node:fs'
import type { Settings } from './schema/schema.ts'
import { type Pem, type Secret, pemFromFile, secretFromEnv, secretFromFile } from './secret.ts'
import { parseDuration } from '../rules/drain/duration.ts'

/** How gateways are found: pods by their labels, or a list in the configuration (APISIX outside of Kubernetes). */
type GatewaySource =
  | { readonly kind: 'pods'; readonly namespace: string | undefined; readonly selector: string }
  | {
      readonly kind: 'static'
      readonly gateways: readonly { readonly name: string; readonly host: string }[]
    }

export interface DashboardConfig {
  readonly auth: { readonly kind: 'none' } | { readonly kind: 'token'; readonly token: Secret }
  /** Further allowed origins, as a browser writes them: scheme, host and port. */
  readonly origins: readonly string[]
}

/** The configuration in the agent's form: checked, complete, frozen. All times in ms. `docs/config.md` explains each setting. */
export interface Config {
  readonly kubernetes: {
    readonly kubeconfig: string | undefined
    readonly account: string
    /** Empty: all namespaces. */
    readonly namespaces: readonly string[]
    readonly events: boolean
  }
  readonly apisix: {
    readonly admin: {
      /** The origin of the Admin API, without a trailing slash and without `/apisix/admin`. */
      readonly url: string
      readonly key: Secret
      readonly ca: Pem | undefined
      readonly timeoutMs: number
    }
    readonly control: {
      readonly enabled: boolean
      readonly port: number
      readonly timeoutMs: number
    }
    readonly barrier:
      | {
          readonly port: number
          readonly scheme: 'http' | 'https'
          readonly token: Secret
          readonly ca: Pem | undefined
          /** The name in the gateways' certificate; `undefined`: a certificate must have its gateway's address. */
          readonly serverName: string | undefined
          readonly ttlMs: number
        }
      | undefined
    readonly gateways: GatewaySource
  }
  readonly drain: {
    readonly reserveMs: number
    readonly settleMs: number
    readonly longLivedMs: number
    readonly dryRun: boolean
  }
  readonly serve: {
    readonly host: string
    readonly port: number
    /** The port of dashboard and metrics; `undefined`: both are on `port`. */
    readonly pagePort: number | undefined
    /** `undefined` if the dashboard is not enabled. */
    readonly dashboard: DashboardConfig | undefined
    readonly shutdownTimeoutMs: number
  }
  readonly leader: Settings['leader']
  readonly sync: Settings['sync']
  readonly ghosts: { readonly afterMs: number }
  /** The webhook that adds hooks; `undefined` without `inject.file`. */
  readonly inject: { readonly file: string; readonly port: number } | undefined
  readonly log: Settings['log']
}

export type Env = Readonly<Record<string, string | undefined>>

/** The selector that matches the pods of the official chart. */
const CHART_SELECTOR = 'app.kubernetes.io/name=apisix'

/**
 * Turns consistent settings into the Config: durations become ms, and secrets become references that can be read. Each file or
 * secret that cannot be read adds a line to `problems`; the caller must then not use the Config.
 */
export function resolve(settings: Settings, env: Env, problems: string[]): Config {
  const { kubernetes, apisix, drain, serve, leader, sync, ghosts, inject, log } = settings
  const { admin, control, barrier } = apisix
  content('kubernetes.kubeconfig', kubernetes.kubeconfig)
  return {
    kubernetes: {
      kubeconfig: kubernetes.kubeconfig,
      account: kubernetes.account,
      namespaces: kubernetes.namespaces,
      events: kubernetes.events
    },
    apisix: {
      admin: {
        url: new URL(admin.url).origin,
        key: secret('apisix.admin.key', admin.keyFile, admin.keyEnv),
        ca: pem('apisix.admin.caFile', admin.caFile),
        timeoutMs: ms(admin.timeout)
      },
      control: {
        enabled: control.enabled,
        port: control.port,
        timeoutMs: ms(control.timeout)
      },
      barrier: barrier && {
        port: barrier.port,
        scheme: barrier.scheme,
        token: secret('apisix.barrier.token', barrier.tokenFile, barrier.tokenEnv),
        ca: pem('apisix.barrier.caFile', barrier.caFile),
        serverName: barrier.serverName,
        ttlMs: ms(barrier.ttl)
      },
      gateways: gatewaySource(apisix.gateways)
    },
    drain: {
      reserveMs: ms(drain.reserve),
      settleMs: ms(drain.settle),
      longLivedMs: ms(drain.longLivedWait),
      dryRun: drain.dryRun
    },
    serve: {
      host: serve.host,
      port: serve.port,
      pagePort: serve.pagePort,
      dashboard: serve.dashboard.enabled ? dashboard(serve.dashboard) : undefined,
      shutdownTimeoutMs: ms(serve.shutdownTimeout)
    },
    leader,
    sync,
    ghosts: { afterMs: ms(ghosts.after) },
    inject: inject.file === undefined ? undefined : { file: inject.file, port: inject.port },
    log
  }

  function dashboard({
    auth,
    tokenFile,
    tokenEnv,
    origins
  }: Settings['serve']['dashboard']): DashboardConfig {
    return {
      auth:
        auth === 'none'
          ? { kind: 'none' }
          : { kind: 'token', token: secret('serve.dashboard.token', tokenFile, tokenEnv) },
      origins: origins.map(origin => new URL(origin).origin)
    }
  }

  function secret(setting: string, file: string | undefined, variable: string | undefined): Secret {
    try {
      return file === undefined ? secretFromEnv(variable ?? '', env) : secretFromFile(file)
    } catch (err) {
      const [suffix, name] = file === undefined ? ['Env', variable] : ['File', file]
      problems.push(`${setting}${suffix}: cannot take the secret from ${name}: ${reason(err)}`)
      return { source: '', read: () => '', toJSON: () => '', toString: () => '' }
    }
  }

  function pem(setting: string, path: string | undefined): Pem | undefined {
    if (path === undefined) return undefined
    try {
      return pemFromFile(path)
    } catch (err) {
      problems.push(`${setting}: cannot take the CA from ${path}: ${reason(err)}`)
      return undefined
    }
  }

  function content(setting: string, path: string | undefined): string | undefined {
    if (path === undefined) return undefined
    try {
      return readFileSync(path, 'utf8')
    } catch (err) {
      problems.push(`${setting}: cannot read ${path}: ${reason(err)}`)
      return undefined
    }
  }
}

const ms = (text: string): number => parseDuration(text) ?? 0

function gatewaySource(gateways: Settings['apisix']['gateways']): GatewaySource {
  if (gateways.static) return { kind: 'static', gateways: gateways.static }
  return { kind: 'pods', namespace: gateways.namespace, selector: gateways.selector ?? CHART_SELECTOR }
}

/** Node's messages repeat the path and the system call, so only the code is used. */
function reason(err: unknown): string {
  const code = (err as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES') return 'no permission'
  return code ?? (err as Error).message
}
