import { readFileSync } from 'node:fs'
import type { Settings } from './schema/schema.ts'
import { parseDuration } from '../rules/drain/annotations.ts'
import { X509Certificate } from 'node:crypto'

/** The configuration in the agent's form: checked, complete, frozen. All times in ms. `docs/config.md` explains each setting. */
export type Config = ReturnType<typeof resolve>

/** How gateways are found: pods by their labels, or a list in the configuration (APISIX outside of Kubernetes). */
type GatewaySource =
  | { readonly kind: 'pods'; readonly namespace: string | undefined; readonly selector: string }
  | {
      readonly kind: 'static'
      readonly gateways: readonly { readonly name: string; readonly host: string }[]
    }

export interface DashboardConfig {
  readonly auth: { readonly kind: 'none' } | { readonly kind: 'token'; readonly token: Secret }
}

/**
 * Turns consistent settings into the Config: durations become ms, and secrets become references that can be read. Each file or
 * secret that cannot be read adds a line to `problems`; the caller must then not use the Config.
 */
export function resolve(settings: Settings, problems: string[]) {
  const { kubernetes, apisix, drain, serve, leader, sync, ghosts, inject, log } = settings
  const { admin, control, barrier } = apisix
  fromFile('kubernetes.kubeconfig', kubernetes.kubeconfig, 'cannot read', path => readFileSync(path))
  return {
    kubernetes,
    apisix: {
      admin: admin && {
        url: new URL(admin.url).origin,
        key: secret('apisix.admin.keyFile', admin.keyFile),
        ca: fromFile('apisix.admin.caFile', admin.caFile, CA, pemFromFile),
        timeoutMs: ms(admin.timeout)
      },
      control: {
        enabled: control.enabled,
        port: control.port,
        timeoutMs: ms(control.timeout)
      },
      barrier: barrier && {
        port: barrier.port,
        scheme: barrier.scheme,
        token: secret('apisix.barrier.tokenFile', barrier.tokenFile),
        ca: fromFile('apisix.barrier.caFile', barrier.caFile, CA, pemFromFile),
        serverName: barrier.serverName,
        ttlMs: ms(barrier.ttl)
      },
      gateways: gatewaySource(apisix.gateways)
    },
    drain: {
      reserveMs: ms(drain.reserve),
      settleMs: ms(drain.settle),
      longLivedMs: ms(drain.longLivedWait),
      dryRun: drain.dryRun
    },
    serve: {
      host: serve.host,
      port: serve.port,
      pagePort: serve.pagePort,
      dashboard: serve.dashboard.enabled ? dashboard(serve.dashboard) : undefined,
      shutdownTimeoutMs: ms(serve.shutdownTimeout)
    },
    leader,
    sync,
    ghosts: { afterMs: ms(ghosts.after) },
    inject: inject.file === undefined ? undefined : { file: inject.file, port: inject.port },
    log
  }

  function dashboard({ auth, tokenFile = '' }: Settings['serve']['dashboard']): DashboardConfig {
    return auth === 'none'
      ? { auth: { kind: 'none' } }
      : { auth: { kind: 'token', token: secret('serve.dashboard.tokenFile', tokenFile) } }
  }

  function secret(setting: string, file: string): Secret {
    const none = { source: '', read: () => '', toJSON: () => '', toString: () => '' }
    return fromFile(setting, file, 'cannot take the secret from', secretFromFile) ?? none
  }

  function fromFile<T>(
    setting: string,
    path: string | undefined,
    cannot: string,
    read: (path: string) => T
  ): T | undefined {
    try {
      return path === undefined ? undefined : read(path)
    } catch (err) {
      problems.push(`${setting}: ${cannot} ${path}: ${reason(err)}`)
      return undefined
    }
  }
}

const CA = 'cannot take the CA from'

const ms = (text: string): number => parseDuration(text) ?? 0

function gatewaySource(gateways: Settings['apisix']['gateways']): GatewaySource {
  if (gateways.static) return { kind: 'static', gateways: gateways.static }
  return { kind: 'pods', namespace: gateways.namespace, selector: gateways.selector }
}

/** Node's messages repeat the path and the system call, so only the code is used. */
function reason(err: unknown): string {
  const code = (err as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES') return 'no permission'
  return code ?? (err as Error).message
}

/** A secret by reference. Printing, logging or serialising it shows its source, never its value. */
export interface Secret {
  /** `<from file /run/secrets/admin-key>`. */
  readonly source: string
  /** The present value. */
  read(): string
  toJSON(): string
  toString(): string
}

/**
 * A function that returns what `read` makes of a file. It reads the file again at each call, because mounted files are replaced in place.
 * While the file is missing or wrong, as for a moment in a rotation, it returns the last good value.
 *
 * @throws Error if the first read fails
 */
function follow(path: string, read: (text: string) => string): () => string {
  let seen = readFileSync(path, 'utf8')
  let good = read(seen)
  return () => {
    try {
      const text = readFileSync(path, 'utf8')
      if (text === seen) return good
      seen = text
      good = read(text)
    } catch {
      // A later call reads it again.
    }
    return good
  }
}

/** A secret in a file, without white space at both ends. @throws Error if the first read fails or finds nothing */
export function secretFromFile(path: string): Secret {
  const read = follow(path, text => {
    if (text.trim() === '') throw new Error('the file is empty')
    return text.trim()
  })
  const source = `<from file ${path}>`
  return Object.freeze({ source, read, toJSON: () => source, toString: () => source })
}

/** Certificates in a file that may be replaced, such as a mounted ConfigMap. */
interface Pem {
  /** The current text. */
  read(): string
}

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** @throws Error if the text holds no certificate, or one that cannot be read */
function check(text: string): string {
  const blocks = text.match(BLOCK) ?? []
  if (blocks.length === 0) throw new Error('it holds no PEM certificate (-----BEGIN CERTIFICATE-----)')
  for (const [i, block] of blocks.entries()) {
    try {
      void new X509Certificate(block).subject
    } catch {
      throw new Error(`its certificate ${i + 1} of ${blocks.length} is damaged`)
    }
  }
  return text
}

/** Certificates from a file. @throws Error if the first read fails or finds no certificate */
export const pemFromFile = (path: string): Pem => Object.freeze({ read: follow(path, check) })

/** The names of the settings for connections to one kind of server. */
export interface Route {
  /** The setting of the server's address. */
  readonly address: string
  /** The setting of the server's scheme. Absent: it is always http. */
  readonly scheme?: string
  /** The setting of the CA that signs the server's certificate. */
  readonly ca: string
}

const MEANING: readonly (readonly [code: RegExp, meaning: (route: Route) => string])[] = [
  [/^E[MN]FILE$/, () => 'the agent has no file descriptor left: raise the limit of open files (ulimit -n)'],
  [
    /^(ENOTFOUND|EAI_AGAIN)$/,
    ({ address }) =>
      `the host name has no address: correct it in ${address}, with the namespace of the Service (name.namespace)`
  ],
  [
    /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST))$/,
    ({ scheme }) =>
      `the server does not speak TLS at that port: write http instead of https in ${scheme ?? ''}, or correct the port`
  ],
  [
    /^(ECONNRESET|EPIPE|HPE_INVALID_CONSTANT)$/,
    ({ scheme }) =>
      `the server broke the connection off: ${scheme ? `if it speaks TLS at that port, write https instead of http in ${scheme}; otherwise ` : ''}look at its log, and at proxies in between`
  ],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED)$/,
    ({ ca }) =>
      `the agent does not trust the CA of the server's certificate: give the PEM of that CA in ${ca}`
  ],
  [/^CERT_HAS_EXPIRED$/, () => "the server's certificate has expired: renew it"],
  [
    /^CERT_NOT_YET_VALID$/,
    () => "the server's certificate is not valid yet: compare the clocks of both machines"
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    ({ address }) => `the server's certificate is for another name: write one of its names in ${address}`
  ],
  [
    /^ERR_(TLS|SSL)_.*CERTIFICATE_REQUIRED$/,
    () => 'the server asks for a client certificate, and the agent sends none'
  ]
]

/** The meaning of a failed connection's code (`ECONNREFUSED`), and a remedy; empty for a code without a row. */
export function networkMeaning(code: string | undefined, route: Route): string {
  if (code === undefined) return ''
  return MEANING.find(([codes]) => codes.test(code))?.[1](route) ?? ''
}
