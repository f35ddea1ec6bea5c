import type { Confirmed } from '../apisix/barrier.ts'
import type { DiscoveredPorts } from '../apisix/discovery.ts'

/** The gateways of one sandbox: they share one configuration store, as several APISIX share one etcd. */
export interface GatewaysOptions {
  /** One address for each gateway. */
  readonly hosts: readonly string[]
  /** The same on every gateway, as with pods of one Deployment. 0 picks free ports (for one gateway only). */
  readonly proxyPort: number
  readonly controlPort: number
  /** The port of the Admin API; only the first gateway has one, except in standalone mode. */
  readonly adminPort: number
  readonly adminKey: string
  /** Without it the gateways have no plugin. */
  readonly barrier?: { readonly port: number; readonly token: string; readonly agent?: string } | undefined
  readonly workers: number
  /** The workers of the last gateway apply each write up to this many ms late. Default: no extra delay. */
  readonly behindMs?: number | undefined
  /** API-driven standalone mode: each gateway has its own Admin API (on `adminPort`) and its own store. */
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

/** From the gateways' process: first `ready` or `failed`, and then the confirmations of its gateways. */
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

/** Tells the gateways' process to stop this gateway with its connections, or to start it again. */
export interface RunMessage {
  readonly type: 'run'
  readonly gateway: string
  readonly on: boolean
}

/** A request to an Admin API, as it is written to `adminLog`. */
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
