import { readFileSync } from 'node:fs'
import type { Settings } from './schema/schema.ts'
import { type Secret, pemFromFile, secretFromEnv, secretFromFile } from './secret.ts'
import { parseDuration } from '../rules/drain/duration.ts'

/** The configuration in the agent's form: checked, complete, frozen. All times in ms. `docs/config.md` explains each setting. */
export type Config = ReturnType<typeof resolve>

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

export type Env = Readonly<Record<string, string | undefined>>

/** The selector that matches the pods of the official chart. */
const CHART_SELECTOR = 'app.kubernetes.io/name=apisix'

/**
 * Turns consistent settings into the Config: durations become ms, and secrets become references that can be read. Each file or
 * secret that cannot be read adds a line to `problems`; the caller must then not use the Config.
 */
export function resolve(settings: Settings, env: Env, problems: string[]) {
  const { kubernetes, apisix, drain, serve, leader, sync, ghosts, inject, log } = settings
  const { admin, control, barrier } = apisix
  fromFile('kubernetes.kubeconfig', kubernetes.kubeconfig, 'cannot read', path => readFileSync(path))
  return {
    kubernetes,
    apisix: {
      admin: {
        url: new URL(admin.url).origin,
        key: secret('apisix.admin.key', admin.keyFile, admin.keyEnv),
        ca: fromFile('apisix.admin.caFile', admin.caFile, CA, pemFromFile),
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
        ca: fromFile('apisix.barrier.caFile', barrier.caFile, CA, pemFromFile),
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

  function fromFile<T>(
    setting: string,
    path: string | undefined,
    cannot: string,
    read: (path: string) => T
  ): T | undefined {
    try {
      return path === undefined ? undefined : read(path)
    } catch (err) {
      problems.push(`${setting}: ${cannot} ${path}: ${reason(err)}`)
      return undefined
    }
  }
}

const CA = 'cannot take the CA from'

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
