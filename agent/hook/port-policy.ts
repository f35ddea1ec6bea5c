/** How many connections may be open. Beyond that, a new connection replaces a waiting one (`limitConnections`). */
export interface ConnectionLimits {
  readonly all: number
  /** From one address: the few hooks of a pod, or all those of a host, whose kubelet calls for its pods. */
  readonly perAddress: number
}

/** The bounds of one port. Every listener of the agent has one of these, and no other bounds. */
export interface PortPolicy {
  readonly connections: ConnectionLimits
  /** Time for a TLS handshake, in ms. */
  readonly handshakeMs: number
  /** Time for the headers, and for the whole request, to arrive, in ms. Neither bounds how long a hook is held. */
  readonly headersMs: number
  readonly requestMs: number
  /** How long an idle connection is kept after its last answer, in ms. */
  readonly idleMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
}

/** For scrapers, probes and the dashboard, in addition to the hooks. */
const OTHER_CONNECTIONS = 256
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

/** The port of the hooks. */
export const hookPolicy = (maxHooks: number): PortPolicy => ({
  ...COMMON,
  connections: { all: maxHooks + OTHER_CONNECTIONS, perAddress: PER_ADDRESS }
})

/** The port of dashboard and metrics: behind a proxy, all users share one address. */
export const pagePolicy: PortPolicy = {
  ...COMMON,
  connections: { all: OTHER_CONNECTIONS, perAddress: OTHER_CONNECTIONS }
}

/** The port of the webhook: only API servers call it, and they wait 3 s. Each may have many pods to ask about. */
export const webhookPolicy: PortPolicy = {
  ...COMMON,
  requestMs: 5000,
  connections: { all: 512, perAddress: 256 }
}
