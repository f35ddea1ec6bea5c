import https from 'node:https'
import type { ConnectionOptions } from 'node:tls'

export interface TlsOptions {
  /** The CAs (PEM), read at each new connection because files are replaced. Absent: the CAs of the system. */
  readonly ca?: (() => string) | undefined
  /** The name that the certificate must have; absent: the host of the URL. */
  readonly serverName?: string | undefined
}

/** The TLS options for one new connection. No variable of the environment can switch the check of the certificate off. */
export const tlsOf = ({ ca, serverName }: TlsOptions): ConnectionOptions => ({
  rejectUnauthorized: true,
  ...(ca && { ca: ca() }),
  ...(serverName !== undefined && { servername: serverName })
})

/** Connections are kept as long as their server keeps them. Each new connection uses the current CA. */
export class TlsAgent extends https.Agent {
  readonly #tls: TlsOptions

  constructor(pool: https.AgentOptions, tls: TlsOptions) {
    // A resumed TLS session would skip the check against a new CA.
    super({ ...pool, maxCachedSessions: 0 })
    this.#tls = tls
  }

  override createConnection(
    ...[options, done]: Parameters<https.Agent['createConnection']>
  ): ReturnType<https.Agent['createConnection']> {
    return super.createConnection({ ...options, ...tlsOf(this.#tls) }, done)
  }
}
