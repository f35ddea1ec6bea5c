import type { Confirmed } from '../apisix/barrier.ts'
import type { DiscoveredPorts } from '../apisix/discovery.ts'

/** The gateways of one sandbox: they share one configuration store, as several APISIX share one etcd. */
export interface GatewaysOptions {
  /** One address each. */
  readonly hosts: readonly string[]
  /** The same on every gateway, as with pods of one Deployment. 0 picks free ones (for one gateway only). */
  readonly proxyPort: number
  readonly controlPort: number
  /** On the first gateway. */
  readonly adminPort: number
  readonly adminKey: string
  /** Without it the gateways have no barrier, as without the plugin. */
  readonly barrier?: { readonly port: number; readonly token: string } | undefined
  readonly workers: number
  /** API-driven: each has an Admin API of its own, all on `adminPort`, and shares nothing with the others. */
  readonly standalone?: boolean | undefined
  /** `discovery.kubernetes` is configured. */
  readonly discovery?: boolean | undefined
  /** File to which one line of JSON is written for every request to an Admin API. */
  readonly adminLog?: string | undefined
  /** File to which one line of JSON is written for every request that has ended. */
  readonly accessLog?: string | undefined
}

export interface GatewayAddress {
  readonly name: string
  readonly host: string
  readonly proxy: string
  readonly control: string
  readonly admin: string | undefined
  readonly barrier: string | undefined
}

/** From the gateways' process: once `ready` or `failed`, and then the confirmations of its gateways. */
export type GatewaysMessage =
  | {
      readonly type: 'ready'
      readonly admin: { readonly url: string; readonly key: string }
      readonly gateways: readonly GatewayAddress[]
    }
  | { readonly type: 'failed'; readonly problem: string }
  | ({ readonly type: 'confirmed' } & Confirmation)

/** To the gateways' process: the nodes that one gateway has found by discovery. */
export interface DiscoveredMessage {
  readonly type: 'discovered'
  readonly gateway: string
  readonly service: string
  readonly ports: DiscoveredPorts
}

/** A request to an Admin API, as `adminLog` has it. */
export interface AdminRequest {
  readonly gateway: string
  readonly method: string
  readonly path: string
  /** The client's `User-Agent`. */
  readonly by: string
}

/** See `Confirmed`. */
export interface Confirmation {
  readonly uid: string
  readonly what: Confirmed
  readonly gateway: string
  /** By `now()`. */
  readonly at: number
}
