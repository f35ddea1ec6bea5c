import type { Settings } from '../build/config.ts'
import type { Rig } from '../build/rig.ts'

/** One mistake of an operator, and the output that must explain it. */
export interface Mistake {
  readonly title: string
  readonly args: readonly string[]
  /** Settings that differ from a valid configuration; `undefined` removes one. */
  readonly settings?: (place: Place) => Settings
  /** Makes the mistake in the cluster. */
  readonly prepare?: (place: Place) => void
  /** The whole file of configuration. */
  readonly file?: string
  readonly exit: number
  /** The output of the command must match each of these: the setting, and the change. */
  readonly says: readonly RegExp[]
  /** The output must match this exactly once. */
  readonly once?: RegExp
}

/** The servers with which the commands run: stand-ins for the API server and for APISIX, and unrelated servers. */
export interface Place {
  readonly rig: Rig
  /** Paths of kubeconfigs. They name a server that speaks only HTTP/1.1, a port at which nothing listens, and another CA. */
  readonly kubeconfigs: { readonly http1: string; readonly closed: string; readonly otherCa: string }
  /** Ports on 127.0.0.1. */
  readonly ports: {
    /** Nothing listens there. */
    readonly closed: number
    /** A login page: HTML for every request, without TLS. */
    readonly page: number
    /** TLS, with a certificate that only `ca` signs. */
    readonly tls: number
  }
}
