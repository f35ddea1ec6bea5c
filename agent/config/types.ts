import type { Settings } from './schema/schema.ts'
import type { Pem } from './pem.ts'
import type { Secret } from './secret.ts'

/** How gateways are found: pods by their labels, or a list in the configuration (APISIX outside of Kubernetes). */
export type GatewaySource =
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
          readonly timeoutMs: number
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
  /** The Lease of the election, as `namespace/name`; `undefined` if `leader.enabled` is false. */
  readonly leader: { readonly lease: string | undefined } | undefined
  readonly sync: Settings['sync']
  readonly ghosts: { readonly afterMs: number }
  /** The webhook that adds hooks; `undefined` without `inject.file`. */
  readonly inject: { readonly file: string; readonly port: number } | undefined
  readonly log: Settings['log']
}
