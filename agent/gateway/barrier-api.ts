/** The client side of docs/barrier-api.md. */
export interface BarrierEntry {
  readonly uid: string
  /** Without brackets. */
  readonly ip: string
  readonly port?: number
  readonly state: 'draining' | 'sealed'
  /** Seconds. */
  readonly ttl: number
}

/** An entry as the gateway tells it. */
export interface BarrierState extends BarrierEntry {
  readonly inflight: { readonly requests: number; readonly long: number }
  readonly bypasses: number
}

export interface BarrierOptions {
  readonly port: number
  readonly scheme: 'http' | 'https'
  /** Called at each request, because tokens are rotated. */
  readonly token: () => string
  /** PEM; undefined = the system's. */
  readonly ca?: string | undefined
  readonly timeoutMs: number
}
