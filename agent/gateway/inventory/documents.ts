import { z } from 'zod'

import { CodedError } from '../../base/errors.ts'
import { nodeKey, type GatewayFact } from '../../rules/drain/facts.ts'
import type { Resource } from '../../rules/plan/holder.ts'
import type { AdminObject, AdminOptions } from '../apisix/admin-api.ts'
import { createHttp } from '../apisix/http.ts'
import { mergedNodes } from './merge-nodes.ts'
import { isRecord } from '../apisix/nodes.ts'

type Value = AdminObject['value']

/** The whole configuration of one gateway (`GET /apisix/admin/configs`), as the gateway holds it in shared memory. */
type ReadDocument = (host: string, signal?: AbortSignal) => Promise<Readonly<Record<string, unknown>>>

const document = z.record(z.string(), z.unknown())

/**
 * Reads the document of one gateway. In API-driven standalone mode each gateway has its own document, and the Service of the Admin API
 * leads to any gateway. So the gateway's host replaces that of `url`; port and scheme stay.
 */
export function createDocumentReader(options: AdminOptions): { read: ReadDocument; close(): void } {
  const { ca, failed } = options
  const http = createHttp({ api: 'ADMIN', keepAlive: true, ca, maxBytes: 64 * 1024 * 1024, failed })
  const { protocol, port } = new URL(options.url)
  const at = Number(port) || (protocol === 'https:' ? 443 : 80)
  return {
    async read(host, signal) {
      const url = `${protocol}//${nodeKey(host, at)}/apisix/admin/configs`
      const headers = { 'X-API-KEY': options.key() }
      const body = await http.json({ method: 'GET', url, headers, timeoutMs: options.timeoutMs, signal })
      const parsed = document.safeParse(body)
      if (parsed.success) return parsed.data
      throw new CodedError('ADMIN_GARBLED', `GET ${url}`, { cause: parsed.error })
    },
    close: http.close
  }
}

interface DocumentsOptions {
  readonly read: ReadDocument
  readonly gateways: () => readonly GatewayFact[]
}

/** All objects of one collection, from the documents of all gateways. */
export type ListDocuments = (resource: Resource, signal?: AbortSignal) => Promise<readonly AdminObject[]>

/**
 * One inventory of many documents. An object has the nodes that it lists in any document. So a node is out of a holder only once the
 * last gateway has dropped it. A starting gateway has an empty document, and is not read. A Terminating gateway is read: it still
 * serves, with a document that the owner no longer renews (gatewayproxy.go:116).
 *
 * The list rejects if a document cannot be read, because its nodes would be missing.
 */
export function listDocuments({ read, gateways }: DocumentsOptions): ListDocuments {
  const revisions = new Map<string, { readonly text: string; readonly revision: number }>()
  let shared: Promise<readonly Value[]> | undefined
  let last = 0

  const readAll = async (signal: AbortSignal | undefined): Promise<readonly Value[]> => {
    const serving = gateways().filter(
      ({ ready, terminating, vanishedAt }) => ready || (terminating && vanishedAt === undefined)
    )
    if (serving.length === 0) throw new CodedError('ADMIN_UNREACHABLE', 'no gateway is known that serves')
    return Promise.all(serving.map(({ ip }) => read(ip, signal)))
  }
  /** Collections that are requested at the same moment come from the same documents. */
  const documents = (signal: AbortSignal | undefined): Promise<readonly Value[]> => {
    if (shared) return shared
    shared = readAll(signal)
    queueMicrotask(() => (shared = undefined))
    return shared
  }
  /** Counts the changes of an object, because the documents' own `modifiedIndex` is the owner's clock, and differs between gateways. */
  const revisionOf = (name: string, value: Value): number => {
    const text = JSON.stringify(value)
    const known = revisions.get(name)
    if (known?.text === text) return known.revision
    revisions.set(name, { text, revision: ++last })
    return last
  }

  return async (resource, signal) => {
    const merged = new Map<string, Value>()
    for (const one of await documents(signal)) {
      const items = one[resource]
      for (const item of Array.isArray(items) ? items.filter(isRecord) : []) {
        const id = idOf(item)
        const known = merged.get(id)
        merged.set(id, known ? (mergedNodes(known, item) as Value) : item)
      }
    }
    return [...merged].map(([id, value]) => ({
      resource,
      id,
      value,
      revision: revisionOf(`${resource}/${id}`, value)
    }))
  }
}

const idOf = ({ id, username }: Value): string => {
  const given = id ?? username
  return typeof given === 'string' || typeof given === 'number' ? String(given) : ''
}
