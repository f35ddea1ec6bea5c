import { readFileSync } from 'node:fs'
import { parseDuration } from '../rules/drain/duration.ts'
import type { Env } from './env.ts'
import type { Settings } from './schema/schema.ts'
import { pemFromFile, type Pem } from './pem.ts'
import { secretFromEnv, secretFromFile, type Secret } from './secret.ts'
import type { Config, DashboardConfig, GatewaySource } from './types.ts'

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
        timeoutMs: ms(barrier.timeout),
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
    leader: leader.enabled ? { lease: leader.lease } : undefined,
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
