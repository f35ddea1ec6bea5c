import type { Discovery } from './discovery.ts'
import type { FetchEntriesOptions } from './fetch-entries.ts'
import type { Names } from './places.ts'
import type { Store } from './store.ts'
import type { ApplyDelay } from './worker.ts'

/** One gateway. Ports: 0 picks a free one, and it stays the same over restarts. */
export interface GatewayOptions {
  /** The "etcd" it follows; several gateways share one. */
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
  /** API-driven: its Admin API takes whole documents, and `store` is its own. Default: it follows etcd. */
  readonly standalone?: boolean
  /** `discovery.kubernetes` is configured. */
  readonly discovery?: Discovery
  /** The addresses of node names. Undefined: workers use this machine's resolver, and report such names in their words. */
  readonly names?: Names
  /** L4 proxying, see AdminApiOptions. */
  readonly stream?: boolean
  readonly patchGapMs?: number
  /** Bytes of the plugin's dictionary. */
  readonly dictionaryBytes?: number
  /** When it starts, the plugin asks the agent for the current entries. */
  readonly fetchEntries?: Omit<FetchEntriesOptions, 'token'>
}
