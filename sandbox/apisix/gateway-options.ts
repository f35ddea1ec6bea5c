import type { Discovery } from './discovery.ts'
import type { Store } from './store.ts'
import type { Names } from './vm/vm.ts'
import type { ApplyDelay } from './worker.ts'

/** The options of one gateway. Port 0 picks a free port, which stays the same over restarts. */
export interface GatewayOptions {
  /** The store that the gateway follows, in place of etcd. Several gateways can share a store. */
  readonly store: Store
  /** The gateway's name in the access log, in place of a pod's name. */
  readonly name: string
  /** Its own loopback address, 127.x.y.z or ::1. */
  readonly host: string
  readonly proxyPort: number
  /** Undefined: this gateway has no Admin API. */
  readonly adminPort?: number
  readonly controlPort: number
  /** Undefined: a gateway without the plugin. */
  readonly barrierPort?: number
  readonly workers: number
  readonly adminKey: string
  readonly barrierToken?: string
  readonly applyDelay?: ApplyDelay
  /** Picks the worker that gets the next connection to an API. Default: any that runs. */
  readonly nextWorker?: () => number
  /** API-driven standalone mode: the Admin API takes whole documents, and `store` is for this gateway only. Default: false. */
  readonly standalone?: boolean
  /** `discovery.kubernetes` is configured. */
  readonly discovery?: Discovery
  /** The addresses of node names. Undefined: workers use this machine's resolver, and report such names in their words. */
  readonly names?: Names
  /** L4 proxying, see AdminApiOptions. */
  readonly stream?: boolean
  /** Bytes of the plugin's dictionary. */
  readonly dictionaryBytes?: number
  /** Set if the plugin asks the agent for the current entries when the gateway starts. */
  readonly fetchEntries?: {
    /** The agent's base URL. */
    readonly url: string
    /** After this many ms the gateway serves without the entries. */
    readonly timeoutMs: number
  }
}
