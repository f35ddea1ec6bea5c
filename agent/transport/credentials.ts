import type { ConnectionOptions } from 'node:tls'

/** How to reach the API server and who we are there. */
export interface Credentials {
  /** `https://10.0.0.1:6443`, or `http://…` for HTTP/2 without TLS. */
  readonly origin: string
  /** Asked for at every new connection, so certificates rotated on disk are picked up. Rejects where a file is unreadable. */
  tls(): Promise<ConnectionOptions>
  /** `authorization` and the like, with lower-case names. Asked for at every request. */
  headers(): Promise<Readonly<Record<string, string>>>
  /** The server answered 401: whatever is cached is read again. */
  refused(): void
}

/** Where the credentials come from: a kubeconfig file (default: as kubectl finds it), or the pod's own account. */
export type CredentialSource =
  | { readonly kind: 'kubeconfig'; readonly file?: string; readonly context?: string }
  /** `account`: the folder that Kubernetes mounts it at. */
  | { readonly kind: 'in-cluster'; readonly account: string }

/** How long a token or the answer of an auth plugin is used before it is asked for again. */
export const FRESH_MS = 10_000
