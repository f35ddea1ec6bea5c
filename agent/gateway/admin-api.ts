import type { Resource } from '../plan/holder.ts'

/** An object as the Admin API gives it. `value` is untouched: fields that we do not know are kept. */
export interface AdminObject {
  readonly resource: Resource
  readonly id: string
  readonly value: Readonly<Record<string, unknown>>
  /** `modifiedIndex` (etcd's mod_revision); 0 in answers to writes, which do not carry it. */
  readonly revision: number
}

export interface AdminPage {
  readonly total: number
  readonly objects: readonly AdminObject[]
}

export interface AdminApi {
  /** One page, from 1. An installation without stream proxying has no stream routes: an empty page, no error. */
  list(resource: Resource, page: number, signal?: AbortSignal): Promise<AdminPage>
  get(resource: Resource, id: string, signal?: AbortSignal): Promise<AdminObject>
  /** Merge-PATCH: objects merge, `null` deletes a key, arrays are replaced whole. */
  patch(resource: Resource, id: string, body: unknown, signal?: AbortSignal): Promise<AdminObject>
  put(resource: Resource, id: string, body: unknown, signal?: AbortSignal): Promise<AdminObject>
  /** `GET /apisix/admin/configs`: only API-driven standalone has it. `false` = etcd mode. */
  standalone(signal?: AbortSignal): Promise<boolean>
  /** Objects per page (10 to 500). */
  readonly pageSize: number
  close(): void
}

export interface AdminOptions {
  /** Without a trailing slash and without `/apisix/admin`. */
  readonly url: string
  /** Called at each request, because keys are rotated. */
  readonly key: () => string
  /** PEM; undefined = the system's. */
  readonly ca?: string | undefined
  readonly timeoutMs: number
  readonly pageSize: number
  /** Largest body accepted, in bytes; default 64 MiB. */
  readonly maxBytes?: number
}

export declare function createAdminApi(options: AdminOptions): AdminApi

/** Which APISIX this is: decides whether anything may be written at all. */
export type Mode = 'etcd' | 'standalone' | 'unreachable' | 'denied'

export declare function detectMode(
  admin: AdminApi,
  signal?: AbortSignal
): Promise<{ readonly mode: Mode; readonly why: string }>
