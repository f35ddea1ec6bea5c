import type { ConnectionOptions } from 'node:tls'

/** How the agent reaches the API server and identifies itself there. */
export interface Credentials {
  /** `https://10.0.0.1:6443`, or `http://…` for HTTP/2 without TLS. */
  readonly origin: string
  /** Called for every new connection, so that certificates that were rotated on disk are used. Rejects if a file is unreadable. */
  tls(): Promise<ConnectionOptions>
  /** `authorization` and the like, with lower-case names. Called for every request. */
  headers(): Promise<Readonly<Record<string, string>>>
  /** Call it after the server answered 401: it drops the cache. */
  refused(): void
}

/** The source of the credentials: a kubeconfig file (default: as kubectl finds it), or the pod's own account. */
export type CredentialSource =
  | { readonly kind: 'kubeconfig'; readonly file?: string }
  /** `account`: the folder in which Kubernetes mounts it. */
  | { readonly kind: 'in-cluster'; readonly account: string }

/** How long a token or the answer of an auth plugin is cached, in ms. */
export const FRESH_MS = 10_000
