import { existsSync, readFileSync } from 'node:fs'

/** How many connections may be open. Beyond that, a new connection replaces a waiting one (`limitConnections`). */
export interface ConnectionLimits {
  readonly all: number
  /** From one address. A pod calls its few hooks; a kubelet calls the hooks of all pods of its host. */
  readonly perAddress: number
}

/** The limits of one port. Every listener of the agent has a PortPolicy, and no other limits. */
export interface PortPolicy {
  readonly connections: ConnectionLimits
  /** Time for a TLS handshake, in ms. */
  readonly handshakeMs: number
  /** The time in which the headers must arrive, and in which the whole request must arrive, in ms. A hook is held for longer. */
  readonly headersMs: number
  readonly requestMs: number
  /** How long an idle connection is kept after its last answer, in ms. */
  readonly idleMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
}

/** How many files this process may have open. Node raises this limit as far as it may. */
function openFiles(): number {
  const limits = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'utf8') : ''
  return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity)
}
/** The part of them that a port gives to its callers. The agent keeps three eighths for its own calls, which every proof needs. */
const share = (eighths: number, most: number): number =>
  Math.min(most, Math.floor((openFiles() * eighths) / 8))

/** How many hooks an agent holds at once. More get 503, or 429 for one pod. */
export const MOST_HOOKS = { maxHooks: share(2, 2000), maxHooksPerPod: 16 }
/** Connections for scrapers, probes and the dashboard, besides those of the hooks. */
const OTHER_CONNECTIONS = share(1, 256)
/** Twice the pods of one host: a kubelet calls `httpGet` hooks from its own address. */
const PER_ADDRESS = 512

const COMMON = {
  handshakeMs: 5000,
  headersMs: 5000,
  requestMs: 10_000,
  idleMs: 5000,
  maxHeaderBytes: 8192,
  maxHeaders: 64
}

/** The limits for the port of the hooks. */
export const hookPolicy = (maxHooks: number): PortPolicy => ({
  ...COMMON,
  connections: { all: maxHooks + OTHER_CONNECTIONS, perAddress: PER_ADDRESS }
})

/** The limits for the port of dashboard and metrics. Behind a proxy, all users share one address. */
export const pagePolicy: PortPolicy = {
  ...COMMON,
  connections: { all: OTHER_CONNECTIONS, perAddress: OTHER_CONNECTIONS }
}

/** The limits for the port of the webhook. Only API servers call it. They wait 3 s, and each may send many reviews at once. */
export const webhookPolicy: PortPolicy = {
  ...COMMON,
  requestMs: 5000,
  connections: { all: share(1, 512), perAddress: 256 }
}
